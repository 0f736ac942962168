"""The sentences of an explanation, each from a verdict, the queue or the running pods."""

from __future__ import annotations

import pytest

from muster.scheduler.cycle.evaluate import Evaluation, evaluate
from muster.scheduler.explain import sentences
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import PodGroupRequest
from muster.scheduler.placement.verdict import (
    DomainsEvaluated,
    ExhaustionProof,
    Infeasible,
    SearchStats,
    Shortage,
    Undecided,
    WeightProof,
)
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.status.messages import shortages_of
from tests.build.objects import RACK, a_basic, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

G = EntityKey("PodGroup", "ns", "g")


def entity_in(world: TestWorld) -> QueuedEntity:
    (entity,) = world.run().scheduler.state.queue.entities.values()
    return entity


def first_shortage(evaluation: Evaluation) -> Shortage:
    assert isinstance(evaluation.verdict, Infeasible)
    return shortages_of(evaluation.verdict)[0]


def an_evaluation(verdict: Infeasible | Undecided) -> Evaluation:
    return Evaluation(PodGroupRequest(G, minimum=2, bound=0, members=()), verdict, {}, DomainsEvaluated(), 0)


# --- what is wrong ---------------------------------------------------------------------------------


def test_a_gang_that_does_not_fit_names_what_came_nearest():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 2), *pods(2, "g"))
    entity, state = entity_in(world), world.scheduler.state
    evaluation = evaluate(state, entity)
    text = sentences.unschedulable_sentence(state, entity, evaluation, first_shortage(evaluation))
    assert text.startswith("podgroup g does not fit: the cluster has 1 of 2 seats")


def test_a_tree_names_the_child_that_failed():
    world = a_world([a_node("n0", cpu=1)]).add(a_composite("top", 1), a_gang("g", 2, parent="top"), *pods(2, "g"))
    entity, state = entity_in(world), world.scheduler.state
    evaluation = evaluate(state, entity)
    text = sentences.unschedulable_sentence(state, entity, evaluation, first_shortage(evaluation))
    assert text.startswith("compositepodgroup top does not fit: podgroup g: the cluster has 1 of 2 seats")


def test_a_pod_repeats_the_message_of_its_diagnosis():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("p", cpu=2))
    entity, state = entity_in(world), world.scheduler.state
    text = sentences.unschedulable_sentence(state, entity, evaluate(state, entity), None)
    assert text == "pod p does not fit: 0/1 nodes are available: 1 Insufficient cpu"


def test_an_undecided_search_is_not_said_to_be_impossible():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 2), *pods(2, "g"))
    entity = entity_in(world)
    undecided = an_evaluation(Undecided(SearchStats(5)))
    text = sentences.unschedulable_sentence(world.scheduler.state, entity, undecided, None)
    assert text == "podgroup g was not placed within the search budget, a place may exist"


def test_a_group_that_lost_members_runs_below_its_minimum():
    world = a_world([a_node("n0", cpu=2)]).add(a_gang("g", 2), *pods(2, "g")).run()
    world.remove("Pod", "g-0")
    world.add(a_pod("big", cpu=1, priority=9)).run()
    world.add(a_pod("g-2", "g"))
    entity = entity_in(world)
    text = sentences.unschedulable_sentence(
        world.scheduler.state, entity, evaluate(world.scheduler.state, entity), None
    )
    assert text == "podgroup g runs below its minimum (1 of 2 members are bound), the rest does not fit"


# --- whether it can ever fit -----------------------------------------------------------------------


def test_a_rack_that_is_too_small_even_when_empty_is_named():
    world = a_world([a_node("n0", cpu=3, rack="r0"), a_node("n1", cpu=2, rack="r1")])
    world.add(a_gang("g", 4, topology=RACK), *pods(4, "g"))
    entity, state = entity_in(world), world.scheduler.state
    evaluation = evaluate(state, entity)
    text = sentences.why_never(state, evaluation, first_shortage(evaluation))
    assert text == "No rack can hold it as the nodes are: the largest would have 3 seats if it were empty"


def test_a_pod_that_is_larger_than_every_node_names_the_resource():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2)]).add(a_basic("g"), a_pod("p", "g", cpu=4))
    entity, state = entity_in(world), world.scheduler.state
    evaluation = evaluate(state, entity)
    text = sentences.why_never(state, evaluation, first_shortage(evaluation))
    assert text == "No node is large enough: a pod asks for 4 cpu, the largest node it may use has 2"


def test_what_would_fit_on_empty_nodes_has_no_such_remark():
    world = a_world([a_node("n0", cpu=2)]).add(a_pod("other", node="n0"), a_gang("g", 2), *pods(2, "g"))
    entity, state = entity_in(world), world.scheduler.state
    evaluation = evaluate(state, entity)
    assert sentences.why_never(state, evaluation, first_shortage(evaluation)) == ""


@pytest.mark.parametrize(
    ("proof", "says"),
    [
        (ExhaustionProof(G, 1, 2, steps=6), "Its pods do not fit together: all 6 ways that differ were tried"),
        (
            WeightProof(G, (), 3, 2),
            "Its pods compete for the same nodes and need more together than all of them can give",
        ),
    ],
    ids=["searched", "weighed"],
)
def test_the_proof_says_why_pods_do_not_fit_together(proof: ExhaustionProof | WeightProof, says: str):
    shortage = Shortage(G, "", "", 1, 2)
    assert (
        sentences.why_never(a_world([a_node("n0")]).scheduler.state, an_evaluation(Infeasible(proof)), shortage) == says
    )


# --- preemption and requeueing ---------------------------------------------------------------------


def test_nobody_of_lower_priority_runs():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("other", node="n0", priority=5), a_pod("p", priority=5))
    entity, state = entity_in(world), world.scheduler.state
    text = sentences.preemption_sentence(state, entity, evaluate(state, entity))
    assert text == "not possible: nothing that runs has a priority below 5"


def test_an_undecided_search_evicts_nobody():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("p", cpu=2))
    entity = entity_in(world)
    text = sentences.preemption_sentence(world.scheduler.state, entity, an_evaluation(Undecided(SearchStats(5))))
    assert text.startswith("not considered: nobody is evicted")


def test_a_pod_whose_policy_is_never_does_not_preempt():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("low", node="n0"), a_pod("p", priority=5, policy="Never"))
    entity, state = entity_in(world), world.scheduler.state
    text = sentences.preemption_sentence(state, entity, evaluate(state, entity))
    assert text == "not considered: the preemption policy is Never"


def test_the_victims_of_the_next_try_are_named_by_entity():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_gang("low", 2), *[a_pod(f"low-{i}", "low", node="n0") for i in range(2)], a_pod("solo", node="n0"))
    world.add(a_gang("g", 3, priority=5), *pods(3, "g", priority=5))
    state = world.scheduler.state
    (entity,) = [each for each in state.queue.entities.values() if each.key == G]
    text = sentences.preemption_sentence(state, entity, evaluate(state, entity))
    assert text == (
        "makes room at its next try: 3 pods of lower priority would leave (podgroup ns/low (2), pod ns/solo)"
    )


def test_an_entity_is_requeued_when_it_has_its_seats_or_for_a_tree_a_seat():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 3, topology=RACK), *pods(3, "g"))
    request = evaluate(world.scheduler.state, entity_in(world)).request
    assert sentences.requeue_sentence(request).startswith("when a change leaves 3 seats for it in one rack")
    tree = a_world([a_node("n0", cpu=1)]).add(a_composite("top", 1), a_gang("g", 2, parent="top"), *pods(2, "g"))
    request = evaluate(tree.scheduler.state, entity_in(tree)).request
    assert sentences.requeue_sentence(request).startswith("when a change leaves a seat for one of its pods")


def test_long_lists_are_cut():
    assert sentences.few(["a", "b", "c"]) == "a, b, c"
    assert sentences.few(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
