"""What Kueue writes on pods: who is admitted by it, and who may evict all the same."""

from __future__ import annotations

import pytest

from muster.api import kueue


@pytest.mark.parametrize("label", ["kueue.x-k8s.io/podset", "kueue.x-k8s.io/managed", "kueue.x-k8s.io/queue-name"])
def test_one_of_its_labels_is_enough(label: str):
    assert kueue.is_admitted({label: "main", "app": "x"})


@pytest.mark.parametrize("labels", [None, {}, {"app": "x"}, {"kueue.x-k8s.io/priority-class": "high"}])
def test_other_labels_are_not(labels: dict[str, str] | None):
    assert not kueue.is_admitted(labels)


@pytest.mark.parametrize(("value", "may"), [("allowed", True), ("never", False), ("true", False), (None, False)])
def test_only_the_annotation_of_a_group_lets_it_evict(value: str | None, may: bool):
    assert kueue.may_preempt({kueue.PREEMPTION: value} if value is not None else None) is may
