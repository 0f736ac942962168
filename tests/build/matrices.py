"""Node matrices and packing instances from plain numbers, without a cluster."""

from __future__ import annotations

import numpy as np

from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import PendingPod, PodGroupRequest
from muster.scheduler.planning.node_matrix import NodeMatrix
from muster.scheduler.planning.packing_instance import PackingInstance, ScopedRequest
from tests.build.objects import a_pod
from tests.build.planning import Scene

_SCENE = Scene()
SHAPES: list[Shape] = [_SCENE.member(a_pod(f"s{i}", cpu=i + 1)).shape for i in range(4)]


def a_matrix(free: list[list[int]], requests: list[list[int]], **columns: list[int]) -> NodeMatrix:
    """Columns of `free` are nodes; every shape may use every node; other keywords are label keys with their values."""
    amounts = np.array(free, dtype=np.int64)
    allowed = np.ones((len(requests), amounts.shape[1]), dtype=bool)
    labels = {key: np.array(values, dtype=np.int64) for key, values in columns.items()}
    shapes = SHAPES[: len(requests)]
    return NodeMatrix(shapes, amounts, np.array(requests, dtype=np.int64), allowed, np.arange(amounts.shape[1]), labels)


def a_leaf(name: str, need: int, topology: str = "", **counts: int) -> PodGroupRequest:
    """A PodGroup with so many members of shapes s0, s1, …"""
    shapes = [SHAPES[int(shape[1:])] for shape, count in counts.items() for _ in range(count)]
    members = tuple(PendingPod(f"{name}-{i}", "ns", f"{name}-{i}", shape, 0) for i, shape in enumerate(shapes))
    return PodGroupRequest(EntityKey("PodGroup", "ns", name), need, 0, members, topology)


def an_instance(matrix: NodeMatrix, *leaves: PodGroupRequest) -> PackingInstance:
    """The PodGroups to be packed together, each on all nodes."""
    return PackingInstance(matrix, [ScopedRequest(leaf, matrix.everywhere()) for leaf in leaves])


def is_sound(instance: PackingInstance, placed: np.ndarray) -> bool:
    """Whether counts per type and node stay within what is free and where the types may be placed."""
    used = instance.requests.T @ placed
    return bool((used <= instance.free).all() and (placed[~instance.fits] == 0).all())
