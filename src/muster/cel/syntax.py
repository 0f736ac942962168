"""A checked expression as a tree: read from the evaluator's own form, and written back where it was rewritten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from muster.cel import wire

_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN = {1: "any", 2: "google.protobuf.Timestamp", 3: "google.protobuf.Duration"}
_CHECKED_EXPR, _PARSED_EXPR = 4, 2  # the number of the field that holds the tree


@dataclass(slots=True)
class Node:
    """One node. `id` is the evaluator's: types and positions are found by it."""

    id: int


@dataclass(slots=True)
class Constant(Node):
    value: Any
    raw: bytes


@dataclass(slots=True)
class Ident(Node):
    name: str


@dataclass(slots=True)
class Select(Node):
    operand: Node
    field: str
    test_only: bool  # has(a.b)


@dataclass(slots=True)
class Call(Node):
    function: str
    target: Node | None
    args: list[Node]

    def operands(self) -> list[Node]:
        return self.args if self.target is None else [self.target, *self.args]


@dataclass(slots=True)
class ListLiteral(Node):
    elements: list[Node]
    optional: bytes


@dataclass(slots=True)
class Entry:
    """One entry of a map or of a message. The key of a message's entry is a name."""

    id: int
    key: Node | str
    value: Node
    optional: bool


@dataclass(slots=True)
class StructLiteral(Node):
    message: str  # empty for a map
    entries: list[Entry]


@dataclass(slots=True)
class Comprehension(Node):
    iter_var: str
    iter_var2: str
    iter_range: Node
    accu_var: str
    accu_init: Node
    loop_condition: Node
    loop_step: Node
    result: Node


@dataclass(slots=True)
class Tree:
    """A whole expression with the types that the check found."""

    root: Node
    types: dict[int, str]
    checked: bool
    url: bytes
    rest: bytes = field(repr=False)  # references, types and positions, as they came
    positions: dict[int, int] = field(default_factory=dict[int, int])

    def fresh_id(self) -> int:
        """A number that no node has."""
        return max((each.id for each in walk(self.root)), default=0) + 1


def read(serialized: bytes) -> Tree:
    """The tree of an expression that the evaluator has serialized."""
    outer = {number: value for number, _, value in wire.fields(serialized)}
    url, body = bytes(outer[1]), bytes(outer[2])  # pyright: ignore[reportArgumentType]
    checked = url.endswith(b"CheckedExpr")
    place = _CHECKED_EXPR if checked else _PARSED_EXPR
    root: Node | None = None
    types: dict[int, str] = {}
    positions: dict[int, int] = {}
    rest = bytearray()
    for number, form, value in wire.fields(body):
        if number == place:
            root = _node(_message(value))
            continue
        rest += wire.raw(number, form, value)
        if number == 3 and checked:
            key, kind = _entry(_message(value))
            types[key] = _type(kind)
        elif number == place + 1:
            positions = _positions(_message(value))
    assert root is not None
    return Tree(root, types, checked, url, bytes(rest), positions)


def write(tree: Tree) -> bytes:
    """The evaluator's form of a tree."""
    place = _CHECKED_EXPR if tree.checked else _PARSED_EXPR
    body = tree.rest + wire.block(place, _encode(tree.root))
    return wire.block(1, tree.url) + wire.block(2, body)


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it."""
    yield node
    for each in children(node):
        yield from walk(each)


def children(node: Node) -> list[Node]:
    """The nodes directly below."""
    match node:
        case Select(operand=operand):
            return [operand]
        case Call():
            return node.operands()
        case ListLiteral(elements=elements):
            return elements
        case StructLiteral(entries=entries):
            return [part for each in entries for part in (each.key, each.value) if isinstance(part, Node)]
        case Comprehension():
            return [node.iter_range, node.accu_init, node.loop_condition, node.loop_step, node.result]
        case _:
            return []


def qualified_name(node: Node) -> str:
    """The name that a node may stand for: variables can have dots in their names."""
    match node:
        case Ident(name=name):
            return name
        case Select(operand=operand, field=field):
            before = qualified_name(operand)
            return f"{before}.{field}" if before else ""
        case _:
            return ""


def _message(value: wire.Value) -> bytes:
    assert isinstance(value, bytes)
    return value


def _entry(data: bytes) -> tuple[int, bytes]:
    found = {number: value for number, _, value in wire.fields(data)}
    return int(found.get(1, 0)), _message(found.get(2, b""))


def _positions(data: bytes) -> dict[int, int]:
    found: dict[int, int] = {}
    for number, _, value in wire.fields(data):
        if number == 4:
            pair = {key: part for key, _, part in wire.fields(_message(value))}
            found[int(pair.get(1, 0))] = int(pair.get(2, 0))
    return found


# Reading


def _node(data: bytes) -> Node:
    node_id, kind, body = 0, 0, b""
    for number, _, value in wire.fields(data):
        if number == 2:
            node_id = int(value)
        else:
            kind, body = number, _message(value)
    parts = list(wire.fields(body))
    first = {number: value for number, _, value in parts}
    match kind:
        case 3:
            return Constant(node_id, _constant(parts), body)
        case 4:
            return Ident(node_id, _text(first.get(1)))
        case 5:
            return Select(node_id, _node(_message(first[1])), _text(first.get(2)), bool(first.get(3, 0)))
        case 6:
            target = _node(_message(first[1])) if 1 in first else None
            args = [_node(_message(value)) for number, _, value in parts if number == 3]
            return Call(node_id, _text(first.get(2)), target, args)
        case 7:
            elements = [_node(_message(value)) for number, _, value in parts if number == 1]
            optional = b"".join(wire.raw(number, form, value) for number, form, value in parts if number == 2)
            return ListLiteral(node_id, elements, optional)
        case 8:
            entries = [_struct_entry(_message(value)) for number, _, value in parts if number == 2]
            return StructLiteral(node_id, _text(first.get(1)), entries)
        case 9:
            return _comprehension(node_id, first)
        case _:
            raise ValueError(f"an expression of kind {kind} is not known")


def _comprehension(node_id: int, first: dict[int, wire.Value]) -> Comprehension:
    return Comprehension(
        node_id,
        _text(first.get(1)),
        _text(first.get(8)),
        _node(_message(first[2])),
        _text(first.get(3)),
        _node(_message(first[4])),
        _node(_message(first[5])),
        _node(_message(first[6])),
        _node(_message(first[7])),
    )


def _struct_entry(data: bytes) -> Entry:
    found = {number: value for number, _, value in wire.fields(data)}
    key = _node(_message(found[3])) if 3 in found else _text(found.get(2))
    return Entry(int(found.get(1, 0)), key, _node(_message(found[4])), bool(found.get(5, 0)))


def _constant(parts: list[tuple[int, int, wire.Value]]) -> Any:
    if not parts:
        return None
    number, _, value = parts[-1]
    match number:
        case 2:
            return bool(value)
        case 3:
            return wire.signed(int(value))
        case 6:
            return _text(value)
        case _:
            return value


def _text(value: wire.Value | None) -> str:
    return "" if value is None else _message(value).decode()


def _type(data: bytes) -> str:
    """A type in the words of Kubernetes' messages: list(int), map(string, dyn)."""
    for number, _, value in wire.fields(data):
        match number:
            case 2:
                return "null"
            case 3:
                return _PRIMITIVES.get(int(value), "dyn")
            case 4:
                return f"wrapper({_PRIMITIVES.get(int(value), 'dyn')})"
            case 5:
                return _WELL_KNOWN.get(int(value), "dyn")
            case 6:
                return f"list({_type(_inner(_message(value), 1))})"
            case 7:
                return f"map({_type(_inner(_message(value), 1))}, {_type(_inner(_message(value), 2))})"
            case 9 | 10:
                return _text(value)
            case 14:
                return _abstract(_message(value))
            case _:
                return "dyn"
    return "dyn"


def _abstract(data: bytes) -> str:
    name, inner = "", list[str]()
    for number, _, value in wire.fields(data):
        if number == 1:
            name = _text(value)
        else:
            inner.append(_type(_message(value)))
    return f"{name}({', '.join(inner)})" if inner else name


def _inner(data: bytes, wanted: int) -> bytes:
    return next((_message(value) for number, _, value in wire.fields(data) if number == wanted), b"")


# Writing


def _encode(node: Node) -> bytes:
    match node:
        case Constant(raw=body):
            kind = 3
        case Ident(name=name):
            kind, body = 4, wire.block(1, name.encode())
        case Select(operand=operand, field=name, test_only=test_only):
            body = wire.block(1, _encode(operand)) + wire.block(2, name.encode())
            kind, body = 5, body + (wire.number(3, 1) if test_only else b"")
        case Call(function=name, target=target, args=args):
            kind, body = 6, b"" if target is None else wire.block(1, _encode(target))
            body += wire.block(2, name.encode()) + b"".join(wire.block(3, _encode(each)) for each in args)
        case ListLiteral(elements=elements, optional=optional):
            kind, body = 7, b"".join(wire.block(1, _encode(each)) for each in elements) + optional
        case StructLiteral(message=name, entries=entries):
            kind, body = 8, wire.block(1, name.encode()) if name else b""
            body += b"".join(wire.block(2, _encode_entry(each)) for each in entries)
        case Comprehension():
            kind, body = 9, _encode_comprehension(node)
        case _:
            raise TypeError(type(node).__name__)
    return wire.number(2, node.id) + wire.block(kind, body)


def _encode_entry(entry: Entry) -> bytes:
    key = wire.block(2, entry.key.encode()) if isinstance(entry.key, str) else wire.block(3, _encode(entry.key))
    body = wire.number(1, entry.id) + key + wire.block(4, _encode(entry.value))
    return body + (wire.number(5, 1) if entry.optional else b"")


def _encode_comprehension(node: Comprehension) -> bytes:
    body = wire.block(1, node.iter_var.encode()) + wire.block(2, _encode(node.iter_range))
    body += wire.block(3, node.accu_var.encode()) + wire.block(4, _encode(node.accu_init))
    body += wire.block(5, _encode(node.loop_condition)) + wire.block(6, _encode(node.loop_step))
    body += wire.block(7, _encode(node.result))
    return body + (wire.block(8, node.iter_var2.encode()) if node.iter_var2 else b"")
