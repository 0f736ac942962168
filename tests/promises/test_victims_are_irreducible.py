"""With more units than are searched exhaustively: no useless victim, no split unit, no budget violated for nothing."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.build.examples import examples, sampled
from tests.build.preemption_cases import Case, Group, Running
from tests.promises import preemption_oracle as oracle
from tests.promises.test_victims_are_cheapest import chosen, settled

MOST_UNITS = 20


def a_larger_case(rng: random.Random) -> Case:
    """Three to six nodes, filled with plain pods, gangs and trees; a preemptor of up to eight pods."""
    case = Case(nodes=[(rng.randint(3, 6), f"r{rng.randint(0, 2)}") for _ in range(rng.randint(3, 6))])
    case.budgets = [rng.randint(0, 3) for _ in range(rng.randint(0, 2))]
    free = [cpu for cpu, _ in case.nodes]
    number = 0
    while len(case.units()) < MOST_UNITS and sum(free) > 1:
        _fill(rng, case, number, free)
        number += 1
    case.tree = rng.random() < 0.5
    case.tree_rack = case.tree and rng.random() < 0.3
    for _ in range(2 if case.tree else 1):
        case.leaves.append((rng.randint(2, 4), rng.randint(1, 2), rng.random() < 0.4))
    return case


def _fill(rng: random.Random, case: Case, number: int, free: list[int]) -> None:
    kind, mode, priority = (
        rng.choice(["pod", "pod", "gang", "tree"]),
        rng.choice(["single", "all"]),
        rng.choice([10, 20]),
    )
    leaves: list[str | None] = [None]
    if kind != "pod":
        parent = f"t{number}" if kind == "tree" else None
        leaves = [f"g{number}-{i}" for i in range(2 if parent else 1)]
        if parent is not None:
            case.groups.append(Group(parent, rng.randint(1, 2), mode, priority, composite=True))
        for leaf in leaves:
            own = "all" if parent and mode == "all" else rng.choice(["single", "all"])
            case.groups.append(Group(str(leaf), rng.randint(1, 2), own, priority, parent))
    for leaf in leaves:
        for _ in range(1 if leaf is None else rng.randint(1, 3)):
            cpu = rng.randint(1, 2)
            room = [i for i, left in enumerate(free) if left >= cpu]
            if room:
                node = rng.choice(room)
                free[node] -= cpu
                budget = rng.choice([None, *range(len(case.budgets))])
                pod = Running(f"p{len(case.pods)}", node, cpu, priority, rng.randint(0, 5), leaf, budget)
                case.pods.append(pod)


def fits_within_budgets(case: Case) -> bool:
    """Is there any set of victims that makes room and violates nothing? Larger sets make more room: try the largest."""
    free = [unit for unit in case.units() if not any(p.budget is not None for p in case.pods if p.name in unit)]
    others = [unit for unit in case.units() if unit not in free]
    for size in range(len(others), -1, -1):
        for some in combinations(others, size):
            if oracle.cost(case, list(some))[0] == 0 and oracle.fits(case, frozenset().union(*free, *some)):
                return True
    return False


LARGER = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@LARGER
@given(st.integers(0, 2**32))
def test_no_victim_of_many_could_have_been_spared(seed: int):
    case = a_larger_case(random.Random(seed))
    world = settled(case)
    victims = chosen(case, world)
    gone = frozenset(world.evicted())
    assert frozenset().union(*victims) == gone
    assert bool(world.pending("vip")) != oracle.fits(case, frozenset().union(*case.units()))
    for unit in victims:
        assert not oracle.fits(case, gone - unit), f"{sorted(unit)} left for nothing"


def test_budgets_hold_when_a_plan_without_violation_exists():
    """Among so many victims the choice is not proven to be the cheapest, but no budget is violated in vain."""
    assert [seed for seed in sampled(range(400)) if _violates_a_budget_in_vain(seed)] == []


def _violates_a_budget_in_vain(seed: int) -> bool:
    case = a_larger_case(random.Random(seed))
    if not case.budgets or sum(p.budget is not None for p in case.pods) > 14:
        return False
    violations = oracle.cost(case, chosen(case, settled(case)))[0]
    return violations > 0 and fits_within_budgets(case)
