"""A placement while it is built: pods by count, domains, satisfied groups, and all of it undone to a mark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from muster.scheduler.placement.request import PodGroupRequest
from muster.scheduler.planning.partial_placement import PartialPlacement, narrowed
from tests.build.cluster import evaluator_of
from tests.build.objects import a_node, a_pod
from tests.build.planning import Scene


@contextmanager
def a_placement(**cpus: int) -> Iterator[tuple[Scene, PartialPlacement]]:
    scene = Scene().nodes(*(a_node(name, cpu=cpu) for name, cpu in cpus.items()))
    with evaluator_of(scene.cluster).trial() as trial:
        yield scene, PartialPlacement(trial)


def a_mixed_gang(scene: Scene) -> PodGroupRequest:
    return scene.gang("g", a_pod("a"), a_pod("big", cpu=3), a_pod("b"), a_pod("c"))


def test_pods_are_placed_up_to_the_room_there_is():
    with a_placement(n0=2, n1=1) as (scene, placement):
        (pods,) = scene.uniform("g", 5).identical

        assert placement.place_best(pods, 2, None) == 2
        assert placement.place_best(pods, 3, None) == 1
        assert (placement.placed(pods), placement.count) == (3, 3)
        assert placement.place_best(pods, 3, None) == 0


def test_only_the_given_nodes_are_used():
    with a_placement(n0=4, n1=4) as (scene, placement):
        (pods,) = scene.uniform("g", 3).identical
        slot = scene.cluster.index["n1"]

        placement.place_best(pods, 3, np.arange(2) == slot)

        assert {assignment.node for assignment in placement.assignments()} == {"n1"}


def test_assignments_name_pods_in_order_of_preference_for_each_shape():
    with a_placement(n0=8, n1=8) as (scene, placement):
        small, large = a_mixed_gang(scene).identical
        placement.place_on(small, scene.cluster.index["n1"], 2)
        placement.place_on(large, scene.cluster.index["n0"])
        placement.place_on(small, scene.cluster.index["n0"])
        assert scene.cluster.used[0].tolist() == [4000, 2000]

        found = [(assignment.uid, assignment.node) for assignment in placement.assignments()]

    assert found == [("uid-a", "n1"), ("uid-b", "n1"), ("uid-big", "n0"), ("uid-c", "n0")]


def test_everything_since_a_mark_is_undone_together():
    with a_placement(n0=4) as (scene, placement):
        gang = a_mixed_gang(scene)
        small, large = gang.identical
        placement.trial.place(small.shape, 0)  # not by this placement
        placement.trial.unplace(small.shape, 0)
        assert placement.placed(small) == 0
        placement.place_on(small, 0)
        placement.choose_domain(gang, 7)
        used = scene.cluster.used.copy()
        mark = placement.mark()
        placement.place_on(small, 0)
        placement.place_on(large, 0)
        other = scene.uniform("other", 1)
        placement.choose_domain(other, 8)
        placement.mark_satisfied(gang)
        assert (placement.placed_since(mark), placement.batches_since(mark)) == (2, 2)
        assert (placement.domain_of(other), placement.is_satisfied(gang)) == (8, True)

        placement.undo(mark)

        assert (placement.placed(small), placement.placed(large), placement.count) == (1, 0, 1)
        assert (placement.domain_of(gang), placement.domain_of(other)) == (7, None)
        assert (placement.is_satisfied(gang), placement.satisfied, len(placement.domains)) == (False, [], 1)
        assert (scene.cluster.used == used).all()
        assert (placement.placed_since(mark), placement.batches_since(mark)) == (0, 0)


def test_pods_placed_in_one_call_are_one_batch():
    with a_placement(n0=4) as (scene, placement):
        mark = placement.mark()
        (pods,) = scene.uniform("g", 3).identical

        placement.place_best(pods, 3, None)

        assert (placement.batches_since(mark), placement.placed_since(mark)) == (1, 3)


def test_nodes_are_narrowed_to_one_value_of_a_label():
    ids = np.array([1, 2, 2, 0])

    assert narrowed(None, ids, 2).tolist() == [False, True, True, False]
    assert narrowed(np.array([True, True, False, True]), ids, 2).tolist() == [False, True, False, False]
