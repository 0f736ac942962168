"""With a gate off, the scheduler does not see the fields that belong to it."""

from __future__ import annotations

import pytest

from muster.api import gates
from muster.engine.ignored_fields import hide_gated_fields
from tests.build.objects import RACK, a_composite, a_gang


def hide(features: str):
    return hide_gated_fields(gates.parse(features)[0])


def test_with_all_gates_on_nothing_is_done():
    assert hide("") is None
    assert hide("WorkloadWithJob=false") is None


@pytest.mark.parametrize(
    ("features", "hidden"),
    [
        ("CompositePodGroup=false", {"parent_composite_pod_group_name"}),
        ("TopologyAwareWorkloadScheduling=false", {"parent_composite_pod_group_name", "scheduling_constraints"}),
        ("PodGroupPreemptionPolicy=false", {"preemption_policy"}),
    ],
)
def test_each_gate_hides_its_own_fields(features: str, hidden: set[str]):
    group = a_gang("g", 3, parent="top", topology=RACK, policy="Never")

    seen = hide(features)(group)

    fields = ("parent_composite_pod_group_name", "scheduling_constraints", "preemption_policy")
    assert {field for field in fields if getattr(seen.spec, field) is None} == hidden
    assert seen.spec.scheduling_policy == group.spec.scheduling_policy


def test_a_group_without_such_fields_is_the_same_object():
    group = a_gang("g", 3)
    assert hide("CompositePodGroup=false")(group) is group


def test_composites_lose_them_as_well():
    assert hide("PodGroupPreemptionPolicy=false")(a_composite("c", 1, policy="Never")).spec.preemption_policy is None
