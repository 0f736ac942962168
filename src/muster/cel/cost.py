"""What an evaluation can cost at most.

Two scales are used. `KUBERNETES` decides whether a rule is accepted: one unit for a variable, a field or a call, a
tenth for each character that a function walks through, ten for a list that is made, and the body of a loop times the
size of what it loops over. `HERE` decides whether an evaluation is started: there a unit is 50 ns of this evaluator,
whose loops that build lists copy them in every turn, and whose calls into Python are dear. Sizes come from shapes:
declared limits when a rule is accepted, actual values when an expression is about to be evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import NamedTuple

from muster.cel.functions.function import Function
from muster.cel.shapes import SCALAR, OneOf, Shape, Sized
from muster.cel.syntax import Call, Comprehension, Constant, Ident, ListLiteral, Node, Select, StructLiteral
from muster.cel.types import ListOf, OptionalOf, Text

_TRAVERSAL = 0.1
_PATTERN = 0.25
_LIST, _MAP, _MESSAGE = 10, 30, 40
UNBOUNDED = 2**63 - 1

_EQUALITY = frozenset(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"))
_LOGIC = frozenset(("_&&_", "_||_"))
_WHOLE_TEXT = frozenset(("lowerAscii", "upperAscii", "trim", "reverse", "charAt", "substring", "strings.quote"))
_LIST_WALKS = frozenset(
    ("join", "flatten", "distinct", "sort", "slice", "lists.@sortByAssociatedKeys", "@sortByAssociatedKeys")
)
_SET_WALKS = frozenset(("sets.contains", "sets.intersects", "sets.equivalent"))
_SAME_VALUE = frozenset(("orValue", "value", "or", "optional.of", "optional.ofNonZeroValue", "dyn", "cel.@block"))
_ENDS = frozenset(("first", "last"))


class Weights(NamedTuple):
    """What costs differently for Kubernetes and here."""

    python_call: float  # a call of a function that Muster computes
    python_part: float  # each element or character that is passed to one
    copied_part: float  # each element that is copied, in every turn of a loop that builds a list or a map
    written_char: float  # each character that split and replace walk through
    compared_part: float  # each part of two values that are compared
    pattern: float  # a search by a regular expression, before the first character


KUBERNETES = Weights(0, 0, 0, _TRAVERSAL, 0, 0)
HERE = Weights(300, 10, 0.4, 1.5, 5, 60)


class Cost(NamedTuple):
    """At most so many units, for a value of this shape."""

    units: float
    shape: Shape


class CostEstimator:
    """Estimates one expression; `functions` are those that Muster computes."""

    def __init__(self, functions: Mapping[str, Function], weights: Weights) -> None:
        self._functions = functions
        self._weights = weights

    def estimate(self, root: Node, variables: Mapping[str, Shape]) -> int:
        """The most that an evaluation can cost."""
        return min(ceil(self._cost(root, variables).units), UNBOUNDED)

    def _cost(self, node: Node, scope: Mapping[str, Shape]) -> Cost:
        match node:
            case Constant(value=value):
                return Cost(0, Sized(len(value), SCALAR) if isinstance(value, str | bytes) else SCALAR)
            case Ident(name=name):
                return Cost(1, scope.get(name, SCALAR))
            case Select(operand=operand, field=field, test_only=test_only):
                inner = self._cost(operand, scope)
                return Cost(inner.units + (0 if test_only else 1), SCALAR if test_only else inner.shape.field(field))
            case ListLiteral(elements=elements):
                parts = [self._cost(each, scope) for each in elements]
                shape = Sized(len(parts), OneOf([each.shape for each in parts]))
                return Cost(_LIST + sum(each.units for each in parts), shape)
            case StructLiteral():
                return self._struct(node, scope)
            case Comprehension():
                return self._comprehension(node, scope)
            case Call():
                return self._call(node, scope)
            case _:
                raise TypeError(type(node).__name__)

    def _struct(self, node: StructLiteral, scope: Mapping[str, Shape]) -> Cost:
        units = float(_MESSAGE if node.message else _MAP)
        shapes: list[Shape] = []
        for entry in node.entries:
            if isinstance(entry.key, Node):
                units += self._cost(entry.key, scope).units
            value = self._cost(entry.value, scope)
            units += value.units
            shapes.append(value.shape)
        return Cost(units, Sized(len(shapes), OneOf(shapes)))

    def _comprehension(self, node: Comprehension, scope: Mapping[str, Shape]) -> Cost:
        around = self._cost(node.iter_range, scope)
        start = self._cost(node.accu_init, scope)
        inner = dict(scope)
        # A loop with one variable goes over the elements of a list or the keys of a map: only the value tells which.
        inner[node.iter_var] = OneOf([around.shape.element(), around.shape.key()])
        if node.iter_var2:
            inner[node.iter_var] = around.shape.key()
            inner[node.iter_var2] = around.shape.element()
        inner[node.accu_var] = start.shape
        turns = around.shape.size
        # What a loop builds up (a list, a map) grows by one part a turn; its parts have the shape of what is added.
        step = self._cost(node.loop_step, inner)
        inner[node.accu_var] = _grown(node, step.shape, turns)
        if isinstance(node.accu_init, StructLiteral):
            step = self._cost(node.loop_step, inner)  # a map is copied for every entry that is added
        copied = turns * turns * self._weights.copied_part if _builds(node) else 0
        condition = self._cost(node.loop_condition, inner)
        result = self._cost(node.result, inner)
        units = around.units + start.units + turns * (condition.units + step.units) + copied + result.units
        return Cost(units, result.shape)

    def _call(self, node: Call, scope: Mapping[str, Shape]) -> Cost:
        parts = [self._cost(each, scope) for each in node.operands()]
        units = sum(each.units for each in parts)
        shapes = [each.shape for each in parts]
        if node.function in _LOGIC:
            return Cost(units, SCALAR)
        if node.function == "_?_:_":
            return Cost(parts[0].units + max(parts[1].units, parts[2].units), OneOf(shapes[1:]))
        walked, shape = self._function(node, shapes, scope)
        return Cost(units + walked, shape)

    def _function(self, node: Call, shapes: list[Shape], scope: Mapping[str, Shape]) -> tuple[float, Shape]:
        """The cost of the call itself, and the shape of its result."""
        name = node.function
        sizes = [each.size for each in shapes]
        match name:
            case _ if name in _EQUALITY:
                deep = (
                    min(each.total() for each in shapes) * self._weights.compared_part
                    if self._weights.compared_part
                    else 0
                )
                return max(1, min(sizes) * _TRAVERSAL, deep), SCALAR
            case "_+_":
                total = sum(sizes)
                return max(1, total * _TRAVERSAL), Sized(total, OneOf([each.element() for each in shapes]))
            case "_[_]" | "_[?_]" | "_?._":
                return 1, self._indexed(node, shapes)
            case "@in":
                return max(1, shapes[1].lookup()), SCALAR
            case "matches":
                searched = (sizes[0] + 1) * _TRAVERSAL * max(1, sizes[1] * _PATTERN)
                return self._weights.pattern + searched, SCALAR
            case "contains":
                return max(1, sizes[0] * _TRAVERSAL * max(1, sizes[1] * _TRAVERSAL)), SCALAR
            case "startsWith" | "endsWith":
                return max(1, sizes[1] * _TRAVERSAL), SCALAR
            case "indexOf" | "lastIndexOf":  # of a text, by the evaluator, or of a list
                passed = self._weights.python_call + sizes[0] * self._weights.python_part
                return max(1, sizes[0] * max(1, sizes[1] * _TRAVERSAL), passed), SCALAR
            case "split":
                return max(1, sizes[0] * self._weights.written_char), Sized(sizes[0] + 1, Sized(sizes[0], SCALAR))
            case "replace":
                return max(1, sizes[0] * self._weights.written_char), Sized((sizes[0] + 1) * max(1, sizes[2]), SCALAR)
            case "format":
                total = sizes[0] + sizes[1] * max(64, shapes[1].element().size)
                return max(1, total * _TRAVERSAL), Sized(total, SCALAR)
            case "string" | "bytes":
                return max(1, sizes[0] * _TRAVERSAL), Sized(max(sizes[0], 32), SCALAR)
            case "lists.range":
                return self._range(node, scope)
            case _ if name in _WHOLE_TEXT:
                return max(1, sizes[0] * _TRAVERSAL), Sized(sizes[0] * 2, SCALAR)
            case _ if name in _LIST_WALKS:
                return self._list_walk(name, shapes)
            case _ if name in _SET_WALKS:
                return max(1, sizes[0] * sizes[1]), SCALAR
            case _ if name in _SAME_VALUE:
                return 1, OneOf(shapes)
            case _ if name in _ENDS:
                return 1, shapes[0].element()
            case _:
                return self._computed(name, shapes)

    def _range(self, node: Call, scope: Mapping[str, Shape]) -> tuple[float, Shape]:
        """As long as a number says: known for a constant and for the size of something."""
        match node.args[0]:
            case Constant(value=int() as length):
                pass
            case Call(function="size") as size:
                length = self._cost(size.operands()[0], scope).shape.size
            case _:
                length = UNBOUNDED
        return max(1, length), Sized(length, SCALAR)

    def _indexed(self, node: Call, shapes: list[Shape]) -> Shape:
        """`a[0]`, `a["b"]`, `a[?"b"]` and `a.?b`: one part."""
        place = node.args[-1]
        if isinstance(place, Constant) and isinstance(place.value, str):
            return shapes[0].field(place.value)
        return shapes[0].element()

    def _list_walk(self, name: str, shapes: list[Shape]) -> tuple[float, Shape]:
        size, part = shapes[0].size, shapes[0].element()
        if name == "join":
            total = size * (part.size + (shapes[1].size if len(shapes) > 1 else 0))
            return max(1, total * _TRAVERSAL), Sized(total, SCALAR)
        if name == "flatten":
            return max(1, size * part.size), Sized(size * part.size, part.element())
        if name == "slice":
            return max(1, size), shapes[0]
        # Distinct compares every element with those before it, and sorting compares about as often.
        return max(1, size * size if name == "distinct" else size * max(1, size.bit_length())), shapes[0]

    def _computed(self, name: str, shapes: list[Shape]) -> tuple[float, Shape]:
        function = self._functions.get(name)
        if function is None:
            return 1, SCALAR
        if not shapes:
            return 1 + self._weights.python_call, SCALAR
        first, second = function.walk * shapes[0].size, 1.0
        if function.walk_second and len(shapes) > 1:
            second = max(1.0, function.walk_second * shapes[1].size)
        walked = max(first, 1.0 if second > 1 else 0.0) * second
        passed = sum(each.size for each in shapes) * self._weights.python_part
        return 1 + max(walked, passed + self._weights.python_call), _result(function, shapes)


def _result(function: Function, shapes: list[Shape]) -> Shape:
    """What a function of ours returns is never larger than what it is given."""
    match function.returns:
        case ListOf() | OptionalOf():
            return Sized(shapes[0].size + 1, shapes[0])
        case Text():
            return Sized(max(shapes[0].size, 64), SCALAR)
        case _:
            return SCALAR if not shapes[0].size else shapes[0].element()


def _builds(node: Comprehension) -> bool:
    """Whether the loop builds up a list or a map."""
    return isinstance(node.accu_init, ListLiteral | StructLiteral) and not isinstance(node.loop_step, Ident)


def _grown(node: Comprehension, step: Shape, turns: int) -> Shape:
    if isinstance(node.accu_init, ListLiteral | StructLiteral):
        return Sized(max(turns, step.size), step.element())
    return step
