"""On small clusters the choice of victims is the best there is, and no promise is broken on the way."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.build.examples import examples
from tests.build.preemption_cases import Case, cases
from tests.build.scheduler import TestWorld
from tests.promises import preemption_oracle as oracle

QUICK = settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def settled(case: Case) -> TestWorld:
    world = case.world()
    case.submit(world)
    return world.wait(5)


def chosen(case: Case, world: TestWorld) -> list[frozenset[str]]:
    gone = set(world.evicted())
    return [unit for unit in case.units() if unit & gone]


@QUICK
@given(cases())
def test_the_preemptor_runs_or_nobody_was_evicted(case: Case):
    world = settled(case)
    runs = not world.pending("vip")
    assert runs == (oracle.best(case) is not None)
    if not runs:
        assert world.evicted() == []


@QUICK
@given(cases())
def test_no_unit_is_split_and_nobody_of_equal_or_higher_priority_leaves(case: Case):
    world = settled(case)
    gone = set(world.evicted())
    assert all(unit <= gone for unit in chosen(case, world))
    assert gone <= frozenset().union(*case.units())


@QUICK
@given(cases())
def test_the_victims_cost_no_more_than_the_cheapest_set_of_all(case: Case):
    world = settled(case)
    best = oracle.best(case)
    if best is not None:
        assert oracle.cost(case, chosen(case, world)) == best


@QUICK
@given(cases())
def test_no_victim_could_have_been_spared(case: Case):
    world = settled(case)
    victims = chosen(case, world)
    for unit in victims:
        rest = frozenset().union(*(other for other in victims if other is not unit))
        assert not oracle.fits(case, rest), f"{sorted(unit)} left for nothing"


@QUICK
@given(cases())
def test_nothing_is_left_behind(case: Case):
    world = settled(case)
    scheduler = world.scheduler.state
    assert not scheduler.preemptions.entities()
    assert not scheduler.nominations
    assert not scheduler.preemptions.unclaimed
    for (kind, _, name), obj in world.objects.items():
        if kind == "Pod":
            assert not obj.status.nominated_node_name, f"{name} keeps a nomination"
            marks = [c for c in obj.status.conditions or () if c.type == "DisruptionTarget" and c.status == "True"]
            assert not marks, f"{name} keeps a mark"
