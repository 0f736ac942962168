"""A checked expression is changed before it runs, where the evaluator's values differ from the declared types.

- `string(x)` of an address becomes a function of our own, because to the evaluator an address is bytes.
- Inside an object a time is text: where an expression reads a value that the check took for a time, it is parsed.
- A function of ours whose result is a time is called by another name, because the evaluator must know that beforehand.
- Python functions and variables cannot give the evaluator an optional value: they give a list of none or one, and the
  expression takes the first of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from muster.cel.functions.addresses import CIDR, IP
from muster.cel.functions.function import TIMES, runtime_name
from muster.cel.syntax import Call, Comprehension, Entry, Ident, ListLiteral, Node, Select, StructLiteral, Tree

_TEXT_TYPES = (IP.name, CIDR.name)
_FIRST = "first"


class Rewriting:
    """What an environment changes in its expressions."""

    def __init__(
        self, optional_functions: Collection[str], optional_variables: Collection[str], timed_functions: Collection[str]
    ) -> None:
        self._functions = optional_functions
        self._variables = optional_variables
        self._timed = timed_functions

    def apply(self, tree: Tree) -> bool:
        """Change the tree in place; whether anything was changed."""
        fresh, changed = tree.fresh_id(), False

        def change(node: Node) -> Node:
            nonlocal fresh, changed
            renamed = self._renamed(tree, node)
            parsed = self._parsed_by(tree, node)
            wrapped = self._is_optional(node)
            changed = changed or renamed or wrapped or bool(parsed)
            if wrapped:
                fresh += 1
                node = Call(fresh, _FIRST, node, [])
            if parsed:
                fresh += 1
                node = Call(fresh, parsed, None, [node])
            return node

        tree.root = mapped(tree.root, change)
        return changed

    def _parsed_by(self, tree: Tree, node: Node) -> str:
        """The function that makes a time of what a node reads; empty where it is none."""
        match node:
            case Ident() | Select(test_only=False) | Call(function="_[_]" | "orValue" | "value"):
                result = tree.types.get(node.id, "")
                return next((name for name, shown in TIMES.items() if shown == result), "")
            case _:
                return ""

    def _is_optional(self, node: Node) -> bool:
        match node:
            case Ident(name=name):
                return name in self._variables
            case Call(function=name):
                return name in self._functions
            case _:
                return False

    def _renamed(self, tree: Tree, node: Node) -> bool:
        if not isinstance(node, Call):
            return False
        if node.function == "string" and tree.types.get(node.args[0].id, "") in _TEXT_TYPES:
            node.function = "@text"
            return True
        if node.function in self._timed:
            result = tree.types.get(node.id, "")
            name = next((each for each, shown in TIMES.items() if shown == result), "")
            node.function = runtime_name(node.function, name)
            return bool(name)
        return False


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with every node replaced by what `change` gives, from the leaves up."""

    def go(each: Node) -> Node:
        return mapped(each, change)

    match node:
        case Select():
            node.operand = go(node.operand)
        case Call():
            node.target = None if node.target is None else go(node.target)
            node.args = [go(each) for each in node.args]
        case ListLiteral():
            node.elements = [go(each) for each in node.elements]
        case StructLiteral():
            node.entries = [
                Entry(each.id, go(each.key) if isinstance(each.key, Node) else each.key, go(each.value), each.optional)
                for each in node.entries
            ]
        case Comprehension():
            node.iter_range, node.accu_init = go(node.iter_range), go(node.accu_init)
            node.loop_condition, node.loop_step = go(node.loop_condition), go(node.loop_step)
            node.result = go(node.result)
        case _:
            pass
    return change(node)
