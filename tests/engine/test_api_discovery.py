"""What the server serves decides how groups are read."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api import gates
from muster.api.errors import no_such_path
from muster.engine.api_discovery import CRDS, NATIVE, NATIVE_OLD, NONE, UnsupportedServer, discover

CORE = ["pods", "nodes", "namespaces", "services", "replicationcontrollers", "persistentvolumes"]
STOCK = {"/api/v1": [*CORE, "persistentvolumeclaims"], "/apis/events.k8s.io/v1": ["events"]}
NEW = {"/apis/scheduling.k8s.io/v1beta1": ["podgroups", "workloads"]}
HUB = {"/apis/scheduling.k8s.io/v1alpha3": ["podgroups", "workloads", "compositepodgroups"]}
OLD = {"/apis/scheduling.k8s.io/v1alpha2": ["podgroups", "workloads"]}
OURS = {"/apis/scheduling.muster.dev/v1alpha3": ["podgroups", "workloads", "compositepodgroups"]}


class Discovery:
    """Answers discovery and nothing else."""

    def __init__(self, *pages: dict[str, list[str]]) -> None:
        self.pages = {path: names for page in pages for path, names in page.items()}

    async def request(self, method: str, path: str, body: Any = None, query: Any = None) -> dict[str, Any]:
        if path not in self.pages:
            raise no_such_path()
        return {"resources": [{"name": name} for name in self.pages[path]]}


async def find(*pages: dict[str, list[str]], features: str = ""):
    return await discover(Discovery(*pages), gates.parse(features)[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pages", "groups", "version"),
    [
        ((STOCK, NEW, HUB, OURS), NATIVE, "scheduling.k8s.io/v1beta1"),
        ((STOCK, HUB), NATIVE, "scheduling.k8s.io/v1alpha3"),
        ((STOCK, OLD, OURS), NATIVE_OLD, "scheduling.k8s.io/v1alpha2"),
        ((STOCK, OURS), CRDS, "scheduling.muster.dev/v1alpha3"),
    ],
)
async def test_the_best_group_api_is_chosen(pages: Any, groups: str, version: str):
    served = await find(*pages)

    assert served.groups == groups
    assert served.resource("PodGroup").api_version == version


async def test_composites_come_from_the_hub_version_beside_newer_pod_groups():
    served = await find(STOCK, NEW, HUB)

    assert served.resource("CompositePodGroup").version == "v1alpha3"


async def test_a_stock_cluster_has_no_groups_and_is_told_what_to_do():
    served = await find(STOCK)

    assert served.groups == NONE
    assert any("muster install --crds" in note for note in served.notes)


async def test_kinds_that_are_not_served_are_left_out_with_a_note():
    served = await find(STOCK)

    assert "StorageClass" not in served.resources
    assert any("storageclasses" in note for note in served.notes)


async def test_a_server_without_pods_is_refused():
    with pytest.raises(UnsupportedServer, match="pods"):
        await find({"/api/v1": ["nodes", "namespaces"]})


async def test_with_gang_scheduling_off_no_group_is_read():
    served = await find(STOCK, NEW, HUB, features="GangScheduling=false")

    assert "PodGroup" not in served.resources
    assert served.groups == NONE


async def test_with_composites_off_only_flat_groups_are_read():
    served = await find(STOCK, NEW, HUB, features="CompositePodGroup=false")

    assert "PodGroup" in served.resources
    assert "CompositePodGroup" not in served.resources


@pytest.mark.parametrize("features", ["GangScheduling=false", "CompositePodGroup=false"])
async def test_what_the_server_has_is_known_whatever_the_gates_say(features: str):
    served = await find(STOCK, NEW, HUB, features=features)

    assert {each.kind for each in served.group_kinds} == {"PodGroup", "Workload", "CompositePodGroup"}


async def test_who_ignores_parents_says_so():
    served = await find(STOCK, NEW, HUB, features="CompositePodGroup=false")

    assert served.notes[-1].startswith("CompositePodGroup is switched off: parents are ignored")
