"""What the server serves decides how groups are read."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api import gates
from muster.api.errors import no_such_path
from muster.api.types import ObjectMeta, Pod, PodSpec, SchedulingGroup
from muster.engine.membership import LABEL, membership
from muster.engine.served import CRDS, NATIVE, NATIVE_OLD, NONE, TooOld, discover

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
    with pytest.raises(TooOld, match="pods"):
        await find({"/api/v1": ["nodes", "namespaces"]})


async def test_with_gang_scheduling_off_no_group_is_read():
    served = await find(STOCK, NEW, HUB, features="GangScheduling=false")

    assert "PodGroup" not in served.resources
    assert served.groups == NONE


async def test_with_composites_off_only_flat_groups_are_read():
    served = await find(STOCK, NEW, HUB, features="CompositePodGroup=false")

    assert "PodGroup" in served.resources
    assert "CompositePodGroup" not in served.resources


# --- membership --------------------------------------------------------------------------------------


def a_member(label: str = "", field: str = "", uid: str = "u1") -> Pod:
    meta = ObjectMeta(name="p", namespace="default", uid=uid, labels={LABEL: label} if label else None)
    return Pod(metadata=meta, spec=PodSpec(scheduling_group=SchedulingGroup(field) if field else None))


def group_of(pod: Pod) -> str | None:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group else None


def test_with_crds_the_label_names_the_group():
    members = membership(CRDS, lambda pod, note: None)

    assert group_of(members(a_member(label="train"))) == "train"
    assert group_of(members(a_member(uid="u2"))) is None


def test_a_label_that_changes_later_is_ignored_and_reported_once():
    notes: list[str] = []
    members = membership(CRDS, lambda pod, note: notes.append(note))
    members(a_member(label="train"))

    assert group_of(members(a_member(label="other"))) == "train"
    assert group_of(members(a_member(label="other"))) == "train"
    assert len(notes) == 1
    assert "train" in notes[0]
    assert "other" in notes[0]


def test_a_label_that_appears_later_makes_no_member():
    notes: list[str] = []
    members = membership(CRDS, lambda pod, note: notes.append(note))
    members(a_member())

    assert group_of(members(a_member(label="train"))) is None
    assert notes


def test_a_new_pod_of_the_same_name_is_read_afresh():
    members = membership(CRDS, lambda pod, note: None)
    members(a_member(label="train"))
    members.forget("u1")

    assert group_of(members(a_member(label="other"))) == "other"


def test_with_the_native_api_the_field_counts_and_the_label_does_not():
    members = membership(NATIVE, lambda pod, note: None)

    assert group_of(members(a_member(label="label", field="field"))) == "field"


def test_without_groups_the_field_means_nothing():
    members = membership(NONE, lambda pod, note: None)

    assert group_of(members(a_member(field="field"))) is None
