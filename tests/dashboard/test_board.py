"""A board that was kept current by events shows what a board made anew from the same objects shows."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muster.dashboard import board as board_module
from muster.dashboard.board import Board
from muster.dashboard.source import fill
from muster.scheduler.interface.events import ObjectDeleted, ObjectUpdated
from muster.scheduler.interface.keys import EntityKey
from tests.build.examples import examples
from tests.build.objects import a_composite, a_gang, a_node, a_pod, pods
from tests.dashboard.pages import RACK

NODES = [a_node(f"n{i}", cpu=4, labels={RACK: f"r{i % 2}"}) for i in range(3)]


def objects_to_send() -> list[Any]:
    """Nodes that come and change, pods that are bound and move, groups that get parents."""
    found: list[Any] = [
        *NODES,
        msgspec.structs.replace(NODES[0], spec=msgspec.structs.replace(NODES[0].spec, unschedulable=True)),
    ]
    found += [a_gang("g", min_count=2), a_gang("g", min_count=3, parent="top"), a_gang("h", min_count=1, parent="top")]
    found += [a_composite("top", min_groups=1)]
    for name, group in (("a", "g"), ("b", "g"), ("c", "h"), ("d", None)):
        found += [a_pod(name, cpu=1, group=group, node=node) for node in ("", "n0", "n1")]
    return found


SENT = objects_to_send()
STEPS = st.lists(st.tuples(st.integers(0, len(SENT) - 1), st.booleans(), st.booleans()), max_size=30)


def shown(board: Board) -> tuple[Any, ...]:
    fill(board)
    return board.nodes.rows, board.gangs.rows, board.queue, board.levels


@example([(11, False, False), (9, False, True), (0, True, False)])  # the node of a member goes
@given(STEPS)
@settings(max_examples=examples(200), deadline=None)
def test_a_board_kept_current_equals_a_board_made_anew(steps: list[tuple[int, bool, bool]]):
    board = Board()
    board.load(("Node", node) for node in NODES)
    fill(board)
    for number, removed, look in steps:
        obj = SENT[number]
        kind, meta = type(obj).__name__, obj.metadata
        known = board.objects.get(kind, {}).get((meta.namespace, meta.name))
        moves = kind == "Pod" and known is not None and known.spec.node_name  # it must be deleted before it can
        if known is not None and (removed or moves):
            board.apply(ObjectDeleted(kind, meta.namespace, meta.name, known.metadata.uid))
        if not removed:
            board.apply(ObjectUpdated(kind, obj))
        if look:
            fill(board)
    anew = Board()
    anew.load((kind, obj) for kind, found in board.objects.items() for obj in found.values())
    assert shown(board) == shown(anew)


def test_a_gang_is_named_by_the_root_of_its_tree_and_counted_on_its_nodes():
    board = Board()
    members = [a_pod(f"g-{i}", cpu=1, group="g", node="n0") for i in range(2)]
    objects = [*NODES, a_composite("top", min_groups=1), a_gang("g", min_count=2, parent="top"), *members]
    board.load((type(obj).__name__, obj) for obj in objects)
    fill(board)
    top = EntityKey("CompositePodGroup", "ns", "top")
    assert [(each.gang, each.pods) for each in board.nodes.rows["n0"].gangs] == [(top, 2)]
    assert board.gangs.rows[top].bound == 2
    assert board.levels == [RACK]


def test_what_waits_is_in_the_queue_of_the_board():
    board = Board()
    board.load((type(obj).__name__, obj) for obj in [*NODES, a_gang("g", min_count=2), *pods(2, group="g", cpu=1)])
    fill(board)
    assert [(row.name, row.members) for row in board.queue] == [("g", "0/2")]
    assert board.waiting == 1


def test_a_pod_for_a_scheduler_that_was_not_known_is_taken_in():
    board = Board()
    board.load((type(obj).__name__, obj) for obj in NODES)
    fill(board)
    board.apply(ObjectUpdated("Pod", a_pod("p", cpu=1, scheduler="another")))
    fill(board)
    assert [row.name for row in board.queue] == ["p"]


def test_a_scheduler_that_took_in_very_much_is_made_anew(monkeypatch):
    monkeypatch.setattr(board_module, "EVENTS_BEFORE_REBUILD", 2)
    board = Board()
    board.load((type(obj).__name__, obj) for obj in NODES)
    fill(board)
    first = board.scheduler
    for node in NODES:
        board.apply(ObjectUpdated("Node", node))
    assert board.scheduler is not first
    assert shown(board)[0].keys() == {"n0", "n1", "n2"}
