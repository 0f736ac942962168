"""What Kubernetes refuses in an expression beyond its types: mixed literals, and constants that cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterator

from muster.cel import evaluator
from muster.cel.functions import regex
from muster.cel.syntax import Call, Constant, Entry, ListLiteral, Node, StructLiteral, Tree, walk

_PARSED = {"matches": "matches", "duration": "duration", "timestamp": "timestamp"}
_MIXED_ALLOWED = frozenset(("format",))  # its arguments are a list of anything


def faults(tree: Tree, text: str) -> list[str]:
    """The complaints about a checked expression, each with its place."""
    exempt = {
        part.id
        for node in walk(tree.root)
        if isinstance(node, Call) and node.function in _MIXED_ALLOWED
        for argument in node.args
        for part in walk(argument)
    }
    found: list[str] = []
    for node in walk(tree.root):
        for place, complaint in _faults(tree, node, exempt):
            found.append(_shown(text, tree.positions.get(place, 0), complaint))
    return found


def _faults(tree: Tree, node: Node, exempt: set[int]) -> Iterator[tuple[int, str]]:
    match node:
        case ListLiteral(elements=elements) if node.id not in exempt:
            yield from _mixed(tree, elements)
        case StructLiteral(message="", entries=entries) if node.id not in exempt:
            yield from _mixed(tree, [each.key for each in entries if isinstance(each.key, Node)])
            yield from _mixed(tree, [_value(each) for each in entries])
        case Call(function=name) if name in _PARSED:
            last = node.operands()[-1]
            if isinstance(last, Constant) and isinstance(last.value, str) and not _parses(name, last.value):
                yield last.id, f"invalid {_PARSED[name]} argument"
        case _:
            return


def _value(entry: Entry) -> Node:
    return entry.value


def _mixed(tree: Tree, parts: list[Node]) -> Iterator[tuple[int, str]]:
    first = ""
    for part in parts:
        found = tree.types.get(part.id, "dyn")
        if found == "dyn" or not first:
            first = first or found
            continue
        if first not in ("dyn", found):
            yield part.id, f"expected type '{first}' but found '{found}'"


def _parses(function: str, text: str) -> bool:
    """Asked of the evaluator itself, which knows its own formats."""
    if function == "matches":
        try:
            regex.find("", text)
        except ValueError:
            return False
        return True
    cel = evaluator.module()
    parsed = evaluator.new_environment({"text": cel.Type.STRING}, []).compile(f"{function}(text)")
    return parsed.eval(data={"text": text}).type() != cel.Type.ERROR


def _shown(text: str, position: int, complaint: str) -> str:
    """A complaint in the form of the evaluator's own: line, column, and a caret below the place."""
    before = text[:position]
    line, column = before.count("\n"), position - (before.rfind("\n") + 1)
    source = text.split("\n")[line]
    return f"ERROR: <input>:{line + 1}:{column + 1}: {complaint}\n | {source}\n | {'.' * column}^"
