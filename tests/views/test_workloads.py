"""From a workload to its groups and back, on a control plane with simulated managers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muster.api.membership import JOB_SETS
from muster.api.resources import PODS
from muster.engine.cluster_snapshot import take_snapshot
from muster.plane.options import NodeOptions, Options
from muster.plane.plane import Plane
from muster.views.explain import explain_in
from muster.views.failures import ViewFailure
from muster.views.queue import rows
from muster.views.schedulers import scheduler_for
from muster.views.tree import trees
from muster.views.workloads import kind_named
from tests.controllers.workloads.owners import a_jobset, a_replicated_job, a_template


@pytest.mark.parametrize(
    ("word", "kind"),
    [("jobset", "JobSet"), ("JobSets", "JobSet"), ("lws", "LeaderWorkerSet"), ("sts", "StatefulSet"), ("node", "")],
)
def test_words_for_kinds(word: str, kind: str):
    assert kind_named(word) == kind


async def test_a_jobset_that_waits_is_found_by_its_name_everywhere():
    options = Options(https=False, freeze=False, nodes=NodeOptions(count=2, cpu="4"), simulated_managers=("jobset",))
    async with Plane(options) as plane:
        owner: Any = a_jobset(a_replicated_job("w", 3, 2, a_template(cpu="3")))
        del owner["metadata"]["uid"]
        await plane.client.create(JOB_SETS, owner, "default")
        async with asyncio.timeout(30):
            while len((await plane.client.list(PODS, "default")).items) < 6:  # noqa: ASYNC110 - the API has no event for it
                await asyncio.sleep(0.02)
        snapshot = await take_snapshot(plane.client)

    scheduler = scheduler_for(snapshot)
    (waiting,) = rows(scheduler)
    assert (waiting.workload, waiting.members) == ("jobset/train", "0/6")
    found = trees(scheduler, "default", "jobset/train")
    assert [(row.kind, row.depth, row.minimum) for row in found] == [("CompositePodGroup", 0, 3)] + [
        ("PodGroup", 1, 2)
    ] * 3
    said = explain_in(snapshot, "JobSet", "default", "train")
    assert (said.kind, said.name) == (found[0].kind, found[0].name)
    with pytest.raises(ViewFailure, match='no groups of jobset "other" exist'):
        explain_in(snapshot, "JobSet", "default", "other")
