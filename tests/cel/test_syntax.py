"""Expressions are read from the evaluator's form and written back without loss."""

from __future__ import annotations

import pytest

from muster.cel import DYN, Environment, syntax
from tests.cel.expressions import TRUE

_ENVIRONMENT = Environment({"free": DYN})


@pytest.mark.parametrize("text", [*TRUE, "free.?a.b[0] == {'x': [1, -2, 3u, 1.5, b'y', null, true]}"])
def test_a_tree_that_was_written_is_read_as_the_same(text: str) -> None:
    tree = syntax.read(_ENVIRONMENT.checker.compile(text).serialize())
    again = syntax.read(syntax.write(tree))
    assert again.root == tree.root
    assert again.types == tree.types
    assert again.positions == tree.positions


def test_types_and_places_of_nodes_are_known() -> None:
    tree = syntax.read(_ENVIRONMENT.checker.compile("[1].map(x, {'a': [x]})").serialize())
    assert tree.types[tree.root.id] == "list(map(string, list(int)))"
    constants = [node for node in syntax.walk(tree.root) if isinstance(node, syntax.Constant) and node.value == 1]
    assert tree.positions[constants[0].id] == 1


def test_a_fresh_number_is_not_taken() -> None:
    tree = syntax.read(_ENVIRONMENT.checker.compile("1 + 2 == 3").serialize())
    assert tree.fresh_id() not in {node.id for node in syntax.walk(tree.root)}
