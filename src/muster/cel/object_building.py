"""Expressions that build objects of types nobody declares: `Object{spec: Object.spec{replicas: 3}}`, `JSONPatch{...}`.

The evaluator only builds messages that it knows. Such an expression is therefore parsed but not checked, its objects
become maps, and names are resolved here; wrong names are found, wrong types only when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from muster.cel import syntax, wire
from muster.cel.environment import Environment
from muster.cel.errors import CompileError, compile_error
from muster.cel.program import LONGEST, Program
from muster.cel.rewriting import mapped
from muster.cel.syntax import Call, Comprehension, Constant, Entry, Ident, Node, Select, StructLiteral, Tree

_NAMESPACES = ("optional", "sets", "lists", "strings", "format", "ip", "jsonpatch")
_TYPES = frozenset(("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "null_type"))


def compile_building(text: str, environment: Environment, built: Collection[str]) -> Program | CompileError:
    """A program whose result has the form of one of the `built` types, or a list of them."""
    if len(text.encode()) > LONGEST:
        return CompileError(f"expression is longer than {LONGEST} bytes")
    try:
        tree = syntax.read(environment.checker.compile(text, disable_check=True).serialize())
    except RuntimeError as error:
        return compile_error(error)
    unknown = next(_unknown_names(tree.root, environment, frozenset(built), frozenset()), None)
    if unknown is not None:
        return CompileError(_undeclared(text, tree, *unknown))
    result = _result(tree.root)
    _simplify(tree, environment)
    environment.rewriting.apply(tree)
    try:
        runnable = environment.runtime.deserialize(syntax.write(tree))
    except RuntimeError as error:
        return compile_error(error)
    return Program(text, environment, tree, runnable, result)


def _result(node: Node) -> str:
    """What an expression gives, as far as its form tells; dyn where it does not."""
    match node:
        case StructLiteral(message=message):
            return message or "map(dyn, dyn)"
        case syntax.ListLiteral(elements=[first, *_]):
            return f"list({_result(first)})"
        case syntax.ListLiteral():
            return "list(dyn)"
        case Constant(value=value):
            return {str: "string", int: "int", bool: "bool"}.get(type(value), "dyn")
        case Call(function="_?_:_", args=[_, one, other]):
            return _result(one) if _result(one) == _result(other) else "dyn"
        case _:
            return "dyn"


def _unknown_names(
    node: Node, environment: Environment, built: frozenset[str], bound: frozenset[str]
) -> Iterator[tuple[int, str]]:
    """Names that are neither variables nor types nor bound by a loop, and types that nobody builds."""
    match node:
        case Select() if syntax.qualified_name(node) in environment.variables:
            return
        case Ident(name=name):
            if name not in environment.variables and name not in bound and name not in _TYPES:
                yield node.id, name
        case StructLiteral(message=message) if message and message.partition(".")[0] not in built:
            yield node.id, message
        case Call(target=Ident(name=name), args=args) if name in _NAMESPACES and name not in bound:
            for each in args:
                yield from _unknown_names(each, environment, built, bound)
        case Comprehension():
            for each in (node.iter_range, node.accu_init):
                yield from _unknown_names(each, environment, built, bound)
            inner = bound | {node.iter_var, node.iter_var2, node.accu_var}
            for each in (node.loop_condition, node.loop_step, node.result):
                yield from _unknown_names(each, environment, built, inner)
        case _:
            for each in syntax.children(node):
                yield from _unknown_names(each, environment, built, bound)


def _undeclared(text: str, tree: Tree, place: int, name: str) -> str:
    position = tree.positions.get(place, 0)
    complaint = f"undeclared reference to '{name}' (in container '')"
    return f"ERROR: <input>:1:{position + 1}: {complaint}\n | {text}\n | {'.' * position}^"


def _simplify(tree: Tree, environment: Environment) -> None:
    """Objects become maps, variables with dots one name, functions of a namespace one name."""
    fresh = tree.fresh_id()

    def change(node: Node) -> Node:
        nonlocal fresh
        match node:
            case StructLiteral(message=message) if message:
                entries: list[Entry] = []
                for entry in node.entries:
                    fresh += 1
                    key = str(entry.key)
                    raw = wire.block(6, key.encode())
                    entries.append(Entry(entry.id, Constant(fresh, key, raw), entry.value, entry.optional))
                return StructLiteral(node.id, "", entries)
            case Select() if (name := syntax.qualified_name(node)) in environment.variables:
                return Ident(node.id, name)
            case Call(target=Ident(name=name)) if name in _NAMESPACES:
                return Call(node.id, f"{name}.{node.function}", None, node.args)
            case _:
                return node

    tree.root = mapped(tree.root, change)
