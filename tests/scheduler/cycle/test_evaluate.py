"""The request of an entity as it is now: what is bound already, and where."""

from __future__ import annotations

from muster.scheduler.cycle.evaluate import current_request, evaluate, request_of
from muster.scheduler.placement.request import CompositeRequest, PodGroupRequest
from muster.scheduler.placement.verdict import Infeasible, Placed
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.nominations import Nomination
from tests.build.objects import HOSTNAME, RACK, a_composite, a_gang, a_node, a_pod, near, pods
from tests.build.scheduler import TestWorld, a_world


def test_the_rest_of_a_gang_goes_to_the_domain_of_those_who_are_bound():
    world = a_world([a_node(f"n{i}", cpu=4, rack=f"r{i}") for i in range(3)])
    world.add(a_gang("g", 3, topology=RACK), a_pod("g-0", "g", node="n2"), a_pod("g-1", "g"), a_pod("g-2", "g"))
    world.restart()
    world.run()
    assert set(world.bound("g").values()) == {"n2"}


def test_replacements_for_a_lost_node_stay_in_the_domain():
    world = a_world([a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])
    world.add(a_gang("g", 4, topology=RACK), *pods(4, "g")).run()
    rack = world.domain("g-0")
    lost = world.bound("g")["g-0"]
    gone = [name for name, node in world.bound("g").items() if node == lost]
    world.remove("Node", lost)
    for name in gone:
        world.remove("Pod", name)
    world.add(*[a_pod(f"new-{i}", "g") for i in range(len(gone))]).run()
    assert world.bound("new") == {}, "the rest of the rack is full"

    world.add(a_node("spare", cpu=4, rack=rack)).run()
    assert set(world.bound("new").values()) == {"spare"}


def entity_of(world: TestWorld, name: str) -> QueuedEntity:
    return next(entity for key, entity in world.scheduler.state.queue.entities.items() if key.name == name)


def test_a_pod_on_its_own_requests_one_seat():
    world = a_world([a_node("n0")]).add(a_pod("p"))
    state = world.scheduler.state
    request = request_of(entity_of(world, "p"), state.shape_of, state.domain_of)
    assert isinstance(request, PodGroupRequest)
    assert (request.minimum, request.bound, [member.uid for member in request.members]) == (1, 0, ["pod-p"])


def test_a_tree_requests_its_existing_groups_with_what_is_bound_and_where():
    world = a_world([a_node("n0", rack="r0")]).add(a_composite("top", 1), a_gang("g", 2, parent="top", topology=RACK))
    world.add(a_pod("g-0", "g", node="n0"), a_pod("g-1", "g"), a_pod("orphan", "missing"))
    state = world.scheduler.state
    request = request_of(entity_of(world, "top"), state.shape_of, state.domain_of)
    assert isinstance(request, CompositeRequest)
    (leaf,) = request.children
    assert isinstance(leaf, PodGroupRequest)
    assert (leaf.minimum, leaf.bound, leaf.topology, leaf.domains) == (2, 1, RACK, ("r0",))
    assert [member.name for member in leaf.members] == ["g-1"]


def test_pods_are_requested_in_the_order_in_which_they_are_placed():
    world = a_world([a_node("n0")]).add(a_gang("g", 1, priority=None))
    world.add(a_pod("late", "g", created=9), a_pod("early", "g", created=1), a_pod("vip", "g", priority=5, created=9))
    request = current_request(world.scheduler.state, entity_of(world, "g"))
    assert isinstance(request, PodGroupRequest)
    assert [member.name for member in request.members] == ["vip", "early", "late"]


def test_shapes_are_looked_up_again_when_a_selector_tells_pods_apart():
    world = a_world([a_node("n0")]).add(a_gang("g", 1), a_pod("a", "g", labels={"app": "a"}))
    world.add(a_pod("b", "g", labels={"app": "b"}, affinity=near(HOSTNAME, app="a")))
    request = current_request(world.scheduler.state, entity_of(world, "g"))
    assert isinstance(request, PodGroupRequest)
    epochs = {world.scheduler.state.forest.members[member.uid].shape_epoch for member in request.members}
    assert epochs == {len(world.scheduler.state.cluster.pod_counts.keys)}


def test_an_evaluation_changes_nothing_and_explains_a_failure():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("big", cpu=2))
    state = world.scheduler.state
    used = state.cluster.used.tobytes()
    evaluation = evaluate(state, entity_of(world, "big"))
    assert isinstance(evaluation.verdict, Infeasible)
    assert [each.message_text() for each in evaluation.diagnoses.values()] == [
        "0/1 nodes are available: 1 Insufficient cpu."
    ]
    assert state.cluster.used.tobytes() == used


def test_seats_nominated_for_others_are_taken():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("p"), a_pod("other"))
    state, entity, other = world.scheduler.state, entity_of(world, "p"), entity_of(world, "other")
    assert isinstance(evaluate(state, entity).verdict, Placed)
    shape = state.shape_of(state.forest.members["pod-other"])
    state.nominations.nominate(Nomination("pod-other", shape, "n0", 0, other.key))
    assert isinstance(evaluate(state, entity).verdict, Infeasible)
    assert isinstance(evaluate(state, other).verdict, Placed)


def test_an_entity_is_evaluated_without_certain_pods():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("there", node="n0"), a_pod("p"))
    entity = entity_of(world, "p")
    assert isinstance(evaluate(world.scheduler.state, entity).verdict, Infeasible)
    assert isinstance(evaluate(world.scheduler.state, entity, evicted=["pod-there"]).verdict, Placed)


def test_domains_are_counted_for_groups_with_a_topology_constraint():
    world = a_world([a_node(f"n{i}", cpu=i + 1, rack=f"r{i}") for i in range(3)])
    world.add(a_gang("g", 2, topology=RACK), *pods(2, "g"))
    domains = evaluate(world.scheduler.state, entity_of(world, "g")).domains
    assert (domains.domains, domains.feasible) == (3, 2)
