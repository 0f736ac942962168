"""Leaves that pods name, counted from the first pod to the last."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from muster.controllers.objects import PodView
from muster.controllers.workloads.seen_leaves import LeafKey, SeenLeaves

LEAF = LeafKey("default", "g")


def a_pod(name: str, uid: str = "u", *, phase: str = "", scheduler: str = "muster", group: str = "g") -> PodView:
    labels = {"kueue.x-k8s.io/pod-group-name": group} if group else {}
    meta = {"name": name, "namespace": "default", "uid": uid, "labels": labels}
    return msgspec.convert(
        {"metadata": meta, "spec": {"schedulerName": scheduler}, "status": {"phase": phase}}, PodView
    )


def test_a_leaf_is_known_from_its_first_pod_to_its_last():
    seen = SeenLeaves(("muster",))

    assert seen.change(None, a_pod("a")) == LEAF
    assert seen.change(None, a_pod("b")) == LEAF
    assert seen.count(LEAF) == 2
    assert seen.change(a_pod("a"), None) == LEAF
    assert seen.change(a_pod("b"), a_pod("b", phase="Succeeded")) == LEAF
    assert LEAF not in seen


def test_what_changes_nothing_is_not_reported():
    seen = SeenLeaves(("muster",))
    seen.change(None, a_pod("a"))

    assert seen.change(a_pod("a"), a_pod("a", phase="Running")) is None
    assert seen.change(None, a_pod("x", scheduler="other")) is None
    assert seen.change(None, a_pod("y", group="")) is None


def test_a_pod_that_was_replaced_between_two_looks_is_counted_once():
    seen = SeenLeaves(("muster",))
    seen.change(None, a_pod("a", "u1"))
    seen.change(a_pod("a", "u1"), a_pod("a", "u2", group="h"))

    assert LEAF not in seen
    assert seen.count(LeafKey("default", "h")) == 1


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["g", "h", ""]), st.sampled_from(["", "Failed", "gone"]))
    )
)
def test_counts_are_those_of_the_pods_that_are_there(changes: list[tuple[str, str, str]]):
    seen = SeenLeaves(("muster",))
    pods: dict[str, PodView] = {}
    for number, (name, group, state) in enumerate(changes):
        old = pods.get(name)
        if state == "gone":
            if old is not None:
                del pods[name]
                seen.change(old, None)
            continue
        uid = old.metadata.uid if old is not None and old.status.phase == "" else str(number)
        same = old.metadata.labels if old is not None and old.metadata.uid == uid else None
        kept = (same or {}).get("kueue.x-k8s.io/pod-group-name", "") if same is not None else group
        pods[name] = a_pod(name, uid, phase=state, group=kept)
        seen.change(old, pods[name])

    for group in ("g", "h"):
        alive = [
            pod
            for pod in pods.values()
            if not pod.finished and (pod.metadata.labels or {}).get("kueue.x-k8s.io/pod-group-name") == group
        ]
        assert seen.count(LeafKey("default", group)) == len(alive)
