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


def test_the_name_that_articles_use_is_an_alias_and_a_warning_says_so():
    found, messages = gates.parse("SchedulerOpportunisticBatching=false")
    assert not found.enabled("OpportunisticBatching")
    assert messages[0] == (
        "warning: feature gate SchedulerOpportunisticBatching is an alias: its name is OpportunisticBatching"
    )


def test_who_names_a_gate_without_effect_is_told():
    assert gates.parse("SchedulerAsyncPreemption=true")[1] == [
        "feature gate SchedulerAsyncPreemption has no effect here"
    ]
    assert gates.parse("GangScheduling=true")[1] == []


def test_the_gates_that_are_not_at_their_default_bring_back_the_same_gates():
    found, _ = gates.parse("GangScheduling=false,SchedulerAsyncAPICalls=true")
    assert found.switched() == {
        "GangScheduling": False,
        "WorkloadAwarePreemption": False,
        "SchedulerAsyncAPICalls": True,
    }
    assert gates.resolve(found.switched())[0] == found
    assert gates.DEFAULT.switched() == {}
