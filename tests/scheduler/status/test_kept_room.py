"""The words about room that is kept."""

from __future__ import annotations

from muster.scheduler.status.kept_room import kept_text, start_text, where_text, with_kept_room
from muster.scheduler.status.messages import MAX_CONDITION_MESSAGE


def test_the_start_is_a_time_or_unknown():
    assert start_text(1_767_225_660.0) == "2026-01-01T00:01:00Z"
    assert start_text(None) == "unknown"


def test_the_place_names_domains_and_one_node_or_how_many():
    assert where_text([], ["n1"]) == "on n1"
    assert where_text([("example.com/rack", "r3")], ["n1", "n2"]) == "in rack r3 on 2 nodes"
    assert where_text([("z", "a"), ("r", "b"), ("r", "b")], ["n1", "n2"]) == "in z a, r b on 2 nodes"


def test_the_words_about_kept_room_are_never_cut():
    kept = kept_text([], ["n1"], None)
    assert with_kept_room("short", "") == "short"
    assert with_kept_room("short", kept) == "short; room is kept for it on n1, expected start unknown"
    long = with_kept_room("x" * 5000, kept)
    assert long.endswith(kept)
    assert len(long) == MAX_CONDITION_MESSAGE
