"""How pods name their groups: by field, by label, or not at all."""

from __future__ import annotations

import pytest

from muster.api.types import OwnerReference, Pod, PodMeta, PodSpec, SchedulingGroup
from muster.engine.api_discovery import CRDS, NATIVE, NONE
from muster.engine.group_membership import LABEL, membership


def a_member(label: str = "", field: str = "", uid: str = "u1") -> Pod:
    meta = PodMeta(name="p", namespace="default", uid=uid, labels={LABEL: label} if label else None)
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


def of_a_job(scheduler: str = "muster", field: str = "", index: str = "0", uid: str = "u1") -> Pod:
    owner = OwnerReference("batch/v1", "Job", "train", "0123456789", True)
    labels = {"batch.kubernetes.io/job-completion-index": index} if index else None
    meta = PodMeta(name="p", namespace="default", uid=uid, labels=labels, owner_references=(owner,))
    spec = PodSpec(scheduler_name=scheduler, scheduling_group=SchedulingGroup(field) if field else None)
    return Pod(metadata=meta, spec=spec)


@pytest.mark.parametrize("served", [NATIVE, CRDS])
def test_where_groups_are_made_a_pod_is_in_the_group_of_its_workload(served: str):
    members = membership(served, lambda pod, note: None, ("muster",))

    assert group_of(members(of_a_job())) == "train-01234567"
    assert group_of(members(of_a_job("other", uid="u2"))) is None


@pytest.mark.parametrize("served", [NATIVE, CRDS])
def test_where_no_groups_are_made_it_is_in_none(served: str):
    assert group_of(membership(served, lambda pod, note: None)(of_a_job())) is None


@pytest.mark.parametrize("served", [NATIVE, CRDS])
def test_membership_is_what_it_was_at_first_sight(served: str):
    members = membership(served, lambda pod, note: None, ("muster",))
    members(of_a_job())

    assert group_of(members(of_a_job(index=""))) == "train-01234567"
    members.forget("u1")
    assert group_of(members(of_a_job(index=""))) is None


def test_a_pod_that_names_its_group_is_in_that_one():
    assert group_of(membership(NATIVE, lambda pod, note: None, ("muster",))(of_a_job(field="mine"))) == "mine"
