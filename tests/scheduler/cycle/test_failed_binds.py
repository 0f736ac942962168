"""Binds that fail: tried again with a backoff, said once on pod and group, and at once after a lost race."""

from __future__ import annotations

from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from tests.build.delayed_api import DelayedApi, a_delayed_api
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

REASON = "missing permission: create on pods/binding"


class Refusing(TestWorld):
    """An API server that refuses every bind."""

    __test__ = False
    cause = events.REFUSED

    def _bind(self, ref, node):
        self._tell(events.BindFailed(ref.uid, node, REASON, self.cause))


def binds(world: TestWorld) -> int:
    return sum(isinstance(decision, d.Bind) for decision in world.log)


def test_a_refused_bind_is_tried_again_after_1_2_4_8_and_10_seconds():
    world = Refusing([a_node("n0")]).add(a_pod("p")).run()
    counts = [binds(world)]
    for seconds in (0.9, 0.1, 1.9, 0.1, 4.0, 8.0, 10.0, 10.0):
        world.wait(seconds)
        counts.append(binds(world))
    assert counts == [1, 1, 2, 2, 3, 4, 5, 6, 7]


def test_a_missing_right_is_tried_every_ten_seconds_and_said_once():
    world = Refusing([a_node("n0", cpu=4)])
    world.cause = events.FORBIDDEN
    world.add(a_gang("g", 2), *pods(2, "g")).wait(60.0)
    assert binds(world) == 2 * 7
    said = [event for event in world.events if event.about.kind == "PodGroup"]
    assert len(said) == 1
    assert REASON in said[0].note
    assert len([event for event in world.events if event.about.kind == "Pod"]) == 2


def test_the_group_and_the_pod_say_why_the_bind_failed():
    world = Refusing([a_node("n0", cpu=4)]).add(a_gang("g", 2), *pods(2, "g")).run()
    group, pod = world.condition("PodGroup", "g"), world.condition("Pod", "g-1")
    assert group is not None
    assert pod is not None
    assert (group.status, group.reason) == ("False", "SchedulerError")
    assert group.message == f"binding pod g-0 failed: {REASON}"
    assert (pod.status, pod.reason, pod.message) == ("False", "SchedulerError", f"binding failed: {REASON}")


def test_the_room_of_a_refused_bind_is_free_for_others_meanwhile():
    world = Refusing([a_node("n0", cpu=1)]).add(a_pod("p", cpu=1)).run()
    assert world.scheduler.state.cluster.pods == {}


def test_a_change_of_the_group_does_not_cut_the_backoff_short():
    world = Refusing([a_node("n0", cpu=4)]).add(a_gang("g", 1), a_pod("g-0", "g")).run()
    world.add(a_pod("g-1", "g")).run()
    assert binds(world) == 1
    world.wait(1.0)
    assert binds(world) == 3


def test_after_a_success_the_backoff_begins_anew():
    world = a_world([a_node("n0", cpu=4)])
    world.refuse_binds = {"g-0"}
    world.add(a_gang("g", 1), *pods(2, "g")).wait(1.0)
    assert len(world.bound()) == 2
    assert world.scheduler.state.bind_failures.until(world.scheduler.state.forest.members["pod-g-0"].group.key) == 0.0


def in_flight() -> DelayedApi:
    """A gang of two whose binds wait at the server."""
    api = a_delayed_api([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    api.add(a_gang("g", 2), *pods(3, "g"))
    api.deliver()
    api.cycles()
    assert len(api.calls) == 3
    return api


def test_a_gang_that_lost_a_race_is_planned_again_at_once_from_the_new_facts():
    api = in_flight()
    calls, api.calls = list(api.calls), []
    taken = calls[0].node
    api.add(a_pod("foreign", cpu=2, node=taken, scheduler="other"))
    api.deliver()
    for call in calls:
        api.scheduler.handle(events.BindFailed(call.pod.uid, call.node, "taken", events.LOST_RACE), api.now)
    api.cycles()
    assert len(api.calls) == 2
    assert all(call.node != taken for call in api.calls)


def test_a_pod_that_is_gone_is_not_bound_again_before_the_watch_shows_it():
    api = in_flight()
    api.remove("Pod", "g-0")
    api.execute()
    api.answer()
    api.deliver("PodGroup")
    api.cycles()
    assert api.calls == []
    api.deliver()
    api.cycles()
    assert api.calls == []
    assert len(api.bound()) == 2
    assert api.scheduler.state.queue.entities == {}


def test_the_rest_of_a_gang_is_planned_as_soon_as_the_watch_has_shown_what_became_of_a_member():
    api = a_delayed_api([a_node("n0", cpu=2)])
    api.add(a_gang("g", 2), *pods(2, "g"))
    api.deliver()
    api.cycles()
    api.remove("Pod", "g-0")
    api.add(a_pod("g-2", "g"))
    api.execute()
    api.answer()
    api.cycles()
    assert api.calls == []
    api.deliver()
    api.cycles()
    assert [call.pod.name for call in api.calls] == ["g-2"]
