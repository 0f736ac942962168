"""Feature gates: everything is on, dependencies hold, nonsense is refused."""

import pytest

from muster.api import gates


def test_everything_of_this_project_is_on_by_default():
    found, messages = gates.parse("")
    for name in ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "CompositePodGroup"):
        assert found.enabled(name)
    assert found == gates.DEFAULT
    assert messages == []


def test_a_gate_can_be_switched_off_and_on():
    found, _ = gates.parse(" PodGroupPreemptionPolicy=false , SchedulerAsyncAPICalls=true,")
    assert not found.enabled("PodGroupPreemptionPolicy")
    assert found.enabled("SchedulerAsyncAPICalls")
    assert found.enabled("GenericWorkload")


def test_a_gate_without_its_dependency_is_off_and_says_so():
    found, messages = gates.parse("TopologyAwareWorkloadScheduling=false")
    assert not found.enabled("CompositePodGroup")
    assert messages == [
        "feature gate CompositePodGroup is disabled: it depends on TopologyAwareWorkloadScheduling, which is off"
    ]


def test_a_missing_dependency_reaches_the_end_of_the_chain():
    found, messages = gates.parse("GenericWorkload=false")
    assert not any(found.enabled(name) for name in ("GangScheduling", "WorkloadAwarePreemption", "CompositePodGroup"))
    assert any("WorkloadAwarePreemption" in message for message in messages)


def test_gangs_can_be_switched_off_while_the_objects_stay():
    found, _ = gates.parse("GangScheduling=false")
    assert not found.enabled("GangScheduling")
    assert found.enabled("GenericWorkload")


def test_delayed_preemption_cannot_be_switched_off():
    with pytest.raises(ValueError, match="DelayedPreemption=false is not supported"):
        gates.parse("DelayedPreemption=false")
    assert gates.parse("DelayedPreemption=true")[0].enabled("DelayedPreemption")


@pytest.mark.parametrize("text", ["NoSuchGate=true", "GenericWorkload", "GenericWorkload=maybe", "=true"])
def test_nonsense_is_refused(text: str):
    with pytest.raises(ValueError, match=r"feature gate|must be true"):
        gates.parse(text)


def test_asking_for_a_gate_that_does_not_exist_is_a_mistake():
    with pytest.raises(KeyError):
        gates.DEFAULT.enabled("NoSuchGate")


def test_every_dependency_is_listed_before_what_needs_it():
    order = list(gates.KNOWN)
    for name, gate in gates.KNOWN.items():
        assert all(order.index(needed) < order.index(name) for needed in gate.needs)
