"""The policies that `muster install --policies` applies, in a server: pods get the leaf that the table gives them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.api.membership import MANAGED_LABEL
from muster.api.membership_policy import membership_policies
from muster.api.resources import NAMESPACES, PODS, Resource
from muster.plane.api import Api

Obj = dict[str, Any]
_PLURALS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "0123456789", "controller": True}
INDEXED = {"labels": {"batch.kubernetes.io/job-completion-index": "0"}, "ownerReferences": [JOB]}


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    opened = await Api.open()
    for obj in membership_policies("muster", "muster-system"):
        resource = Resource("admissionregistration.k8s.io", "v1", _PLURALS[obj["kind"]], obj["kind"], False)
        await opened.client.create(resource, obj)
    namespace = {"metadata": {"name": "managed", "labels": {MANAGED_LABEL: "true"}}}
    await opened.client.create(NAMESPACES, namespace)
    yield opened
    await opened.close()


async def create(api: Api, namespace: str = "default", meta: Obj | None = None, **spec: Any) -> Obj:
    body = {"metadata": {"generateName": "p-", **(INDEXED if meta is None else meta)}}
    body["spec"] = {"containers": [{"name": "c", "image": "i"}], **spec}
    return (await api.client.create(PODS, body, namespace))["spec"]


async def test_a_pod_that_names_our_scheduler_is_put_into_its_leaf(api: Api):
    made = await create(api, schedulerName="muster")

    assert made["schedulingGroup"] == {"podGroupName": "train-01234567"}


async def test_a_pod_of_another_scheduler_is_left_alone(api: Api):
    assert "schedulingGroup" not in await create(api)


async def test_a_pod_that_belongs_to_nobody_is_left_alone(api: Api):
    assert "schedulingGroup" not in await create(api, meta={}, schedulerName="muster")


async def test_a_group_that_a_pod_names_is_kept(api: Api):
    made = await create(api, schedulerName="muster", schedulingGroup={"podGroupName": "mine"})

    assert made["schedulingGroup"] == {"podGroupName": "mine"}


async def test_in_a_managed_namespace_pods_get_our_scheduler_and_their_leaf(api: Api):
    made = await create(api, "managed")

    assert (made["schedulerName"], made["schedulingGroup"]) == ("muster", {"podGroupName": "train-01234567"})
    assert (await create(api, "managed", schedulerName="other"))["schedulerName"] == "other"
