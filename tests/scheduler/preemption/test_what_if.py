"""Plans on a cluster without some victims, and which of them can be reprieved."""

from __future__ import annotations

from muster.scheduler.cycle.evaluate import request_of
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.placement.verdict import Infeasible, Placed
from muster.scheduler.preemption.what_if import EvictionTrial
from tests.build.objects import HOSTNAME, a_gang, a_node, a_pod, apart, pods
from tests.build.preemption import HIGH, Evictions, with_lows
from tests.build.scheduler import TestWorld, a_world


def test_a_pod_that_repels_the_preemptor_leaves_although_there_is_room():
    term = {"labelSelector": {"matchLabels": {"app": "loud"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world = a_world([a_node("n0", cpu=4)])
    with_lows(world, ("loud", "n0", 1), labels={"app": "loud"})
    with_lows(world, ("calm", "n0", 1))
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH, affinity=apart)).run()
    assert world.evicted() == ["loud"]
    assert world.bound("g") == {"g-0": "n0"}


def test_a_spread_pod_moves_a_victim_where_cpu_would_fit():
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    world = a_world([a_node("n0", cpu=4), a_node("n1", cpu=1)])
    world.add(a_pod("web-0", priority=HIGH, node="n0", labels={"app": "web"}))
    with_lows(world, ("low", "n1", 1))
    world.add(a_pod("web-1", priority=HIGH, labels={"app": "web"}, topologySpreadConstraints=spread)).run()
    assert world.evicted() == ["low"]
    assert world.bound("web-1") == {"web-1": "n1"}


class WhatIf:
    """A pending entity over the victims of a world."""

    def __init__(
        self, world: TestWorld, name: str, nominated: tuple[tuple[str, str], ...] = (), leaving: str = ""
    ) -> None:
        self.found = Evictions(world)
        state = self.found.state
        entity = next(entity for entity in state.queue.entities.values() if entity.key.name == name)
        self.request: GroupRequest = request_of(entity, state.shape_of, state.domain_of)
        held = [(self.found.shape(a_pod(pod)), state.cluster.index[node]) for pod, node in nominated]
        self.trial = EvictionTrial(state.evaluator, held, [f"pod-{name}" for name in leaving.split()], 1000)

    def suffices(self, *names: str) -> bool:
        return self.trial.suffices(self.request, [self.found.victim(name) for name in names])

    def after_reprieve(self, pool: str, order: str) -> list[str] | None:
        victims, ordered = ([self.found.victim(name) for name in names.split()] for names in (pool, order))
        remaining = self.trial.victims_after_reprieve(self.request, victims, ordered)
        return None if remaining is None else [victim.key.name for victim in remaining]


def two_full_nodes(cpu: int = 2) -> TestWorld:
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    with_lows(world, *((f"v{i}", f"n{i // 2}", 1) for i in range(4)))
    return world.add(a_pod("new", cpu=cpu, priority=HIGH))


def test_a_request_is_planned_as_if_the_victims_were_gone():
    what_if = WhatIf(two_full_nodes(), "new")
    used = what_if.found.state.cluster.used.copy()

    assert not what_if.suffices("v0")
    assert not what_if.suffices("v0", "v2")
    assert what_if.suffices("v2", "v3")
    assert isinstance(what_if.trial.plan(what_if.request, []), Infeasible)
    verdict = what_if.trial.plan(what_if.request, [what_if.found.victim(name) for name in ("v2", "v3")])
    assert isinstance(verdict, Placed)
    assert [one.node for one in verdict.assignments] == ["n1"]
    assert (what_if.found.state.cluster.used == used).all()


def test_pods_that_leave_anyway_are_gone_and_nominated_seats_are_taken():
    assert WhatIf(two_full_nodes(), "new", leaving="v1 unknown").suffices("v0")
    assert not WhatIf(two_full_nodes(), "new", nominated=(("other", "n0"),)).suffices("v0", "v1")
    assert WhatIf(two_full_nodes(), "new", nominated=(("other", "n0"),)).suffices("v2", "v3")


def test_victims_with_room_beside_the_placed_pods_are_reprieved_in_order():
    what_if = WhatIf(two_full_nodes(cpu=1), "new")

    (first,) = what_if.after_reprieve("v0 v1", "v0 v1") or []
    (second,) = what_if.after_reprieve("v0 v1", "v1 v0") or []

    assert (first, second) == ("v1", "v0")  # who comes first in the order has room
    everyone = what_if.after_reprieve("v0 v1 v2 v3", "v0 v1 v2 v3")
    assert everyone is not None
    assert len(everyone) == 1


def test_without_a_plan_nobody_is_reprieved():
    assert WhatIf(two_full_nodes(cpu=3), "new").after_reprieve("v0 v1 v2 v3", "v0 v1 v2 v3") is None


def test_a_victim_that_the_placed_pod_repels_is_not_reprieved():
    world = with_lows(a_world([a_node("n0", cpu=4)]), ("loud", "n0", 1), labels={"app": "loud"})
    with_lows(world, ("calm", "n0", 1))
    world.add(a_pod("new", priority=HIGH, affinity=apart(HOSTNAME, app="loud")))

    assert WhatIf(world, "new").after_reprieve("calm loud", "loud calm") == ["loud"]
