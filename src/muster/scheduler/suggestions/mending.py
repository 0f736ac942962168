"""Nodes that are out of service: cordoned, or not ready. Back in service they may be all it takes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from muster.api import types
from muster.scheduler.explanation import Suggestion
from muster.scheduler.suggestions.question import Question
from muster.scheduler.words import say_count

CORDON = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE = (
    CORDON,
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/out-of-service",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
)
MOST_NAMED = 4


def put_nodes_back(question: Question) -> Iterator[Suggestion]:
    """The fewest nodes to uncordon, and the fewest to make ready again."""
    nodes = sorted(question.world.cluster.node_objects.values(), key=lambda node: node.metadata.name)
    cordoned = [node for node in nodes if node.spec.unschedulable and not _is_ill(node)]
    yield from _back(question, cordoned, "uncordon", "uncordon")
    yield from _back(question, [node for node in nodes if _is_ill(node)], "mend-nodes", "make ready again")


def _back(question: Question, nodes: list[types.Node], action: str, verb: str) -> Iterator[Suggestion]:
    mended = [_in_service(node) for node in nodes]
    count = question.fewest(len(mended), lambda number: mended[:number])
    if count is None:
        return
    names = [node.metadata.name for node in nodes[:count]]
    shown = ", ".join(names[:MOST_NAMED]) + (f" and {count - MOST_NAMED} more" if count > MOST_NAMED else "")
    details: dict[str, str | int] = {"nodes": count, "names": ",".join(names)}
    yield Suggestion(action, f"{verb} {say_count(count, 'node')}: {shown}", details)


def _is_ill(node: types.Node) -> bool:
    return any(taint.key in OUT_OF_SERVICE and taint.key != CORDON for taint in node.spec.taints or ())


def _in_service(node: types.Node) -> types.Node:
    taints = tuple(taint for taint in node.spec.taints or () if taint.key not in OUT_OF_SERVICE)
    spec = msgspec.structs.replace(node.spec, unschedulable=False, taints=taints)
    return msgspec.structs.replace(node, spec=spec)
