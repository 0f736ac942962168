"""What the tree search need not try: symmetric domains, and states beyond the domain bounds."""

from __future__ import annotations

from muster.scheduler.placement.verdict import ExhaustionProof, Infeasible
from tests.build.objects import RACK, a_node
from tests.build.planning import Scene, racks


def test_one_gang_too_many_for_the_racks_is_proven():
    scene = racks(r1=5, r2=5, r3=4)
    tree = scene.composite("root", *(scene.uniform(f"g{i}", 3, topology=RACK) for i in range(4)))

    verdict = scene.plan(tree).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, ExhaustionProof)


def test_sixty_gangs_for_fifty_racks_are_refuted_at_once():
    scene = Scene()
    for rack in range(50):
        scene.nodes(*(a_node(f"r{rack}-{i}", cpu=4, rack=f"r{rack}") for i in range(2)))
    tree = scene.composite("root", *(scene.uniform(f"g{i}", 5, topology=RACK) for i in range(60)))

    verdict = scene.plan(tree).verdict

    assert isinstance(verdict, Infeasible)
    assert verdict.steps < 1000
