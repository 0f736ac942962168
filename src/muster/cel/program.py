"""Compiling and evaluating expressions.

Nothing expensive is ever started: before an evaluation its work is bounded by the sizes of the actual values, and
refused where it could take more than 50 ms. The evaluator itself stops after 10,000 iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.cel import evaluator, syntax
from muster.cel.checks import faults
from muster.cel.cost import HERE, KUBERNETES, CostEstimator
from muster.cel.environment import Environment
from muster.cel.errors import CompileError, EvaluationError, compile_error, evaluation_error
from muster.cel.shapes import Actual, Bounded, Declared
from muster.cel.types import Type
from muster.cel.values import Values, converter

PER_CALL_LIMIT = 1_000_000
"""Kubernetes' limit for one evaluation."""

LONGEST = 10 * 1024
_HANDED_OVER = 8  # units for each part of a value that the evaluator is given
_WORDS = {
    "BOOL": "bool",
    "INT": "int",
    "UINT": "uint",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "bytes",
    "TIMESTAMP": "google.protobuf.Timestamp",
    "DURATION": "google.protobuf.Duration",
    "NULL": "null_type",
    "DYN": "dyn",
}


def compile(text: str, environment: Environment, *, returns: Type | None = None) -> Program | CompileError:
    """A program, or why the text is none. With `returns`, its result must have that type, or only be known later."""
    if len(text.encode()) > LONGEST:
        return CompileError(f"expression is longer than {LONGEST} bytes")
    try:
        checked = environment.checker.compile(text)
    except RuntimeError as error:
        return compile_error(error)
    result = _result_type(checked)
    if returns is not None and result not in (returns.name, "dyn"):
        return CompileError(f"must evaluate to {returns.name} but got {result}")
    serialized = checked.serialize()
    tree = syntax.read(serialized)
    complaints = faults(tree, text)
    if complaints:
        return CompileError("\n".join(complaints))
    if environment.rewriting.apply(tree):
        serialized = syntax.write(tree)
    try:
        runnable = environment.runtime.deserialize(serialized)
    except RuntimeError as error:
        return compile_error(error)
    return Program(text, environment, tree, runnable, result)


def _result_type(checked: Any) -> str:
    name: str = checked.return_type().name()
    return _WORDS.get(name, name)


def _complaint(result: Any) -> str:
    try:
        return str(result.value())
    except TypeError:  # an optional value is no error, but no value either
        return "the result is an optional value; use orValue() or value()"


class Program:
    """A compiled expression."""

    def __init__(self, text: str, environment: Environment, tree: syntax.Tree, runnable: Any, result: str) -> None:
        self.text = text
        self.result = result  # the type of the result, in the language's words
        self._environment = environment
        self._tree = tree
        self._runnable = runnable
        self._error = evaluator.module().Type.ERROR
        self._limits = CostEstimator(environment.costs, KUBERNETES)
        self._work = CostEstimator(environment.costs, HERE)
        self._converters = {
            name: convert
            for name, declared in environment.variables.items()
            if (convert := converter(declared)) is not None
        }
        self._bounds: dict[int, int] = {}
        self.names = frozenset(map(syntax.qualified_name, syntax.walk(tree.root))) & environment.variables.keys()

    def cost(self) -> int:
        """The most that one evaluation can cost, by the limits of the declared types."""
        shapes = {name: Declared(declared) for name, declared in self._environment.variables.items()}
        return self._limits.estimate(self._tree.root, shapes)

    def evaluate(self, variables: Mapping[str, Any] | Values) -> Any:
        """The result on these values. Raises EvaluationError where there is none, or where it could take too long."""
        given = variables if isinstance(variables, Values) else Values(variables)
        values = {name: given.get(name, self._converters.get(name)) for name in self.names if name in given}
        if self._is_too_much(given, values):
            raise EvaluationError("operation cancelled: actual cost limit exceeded")
        try:
            result = self._runnable.eval(data=values)
        except RuntimeError as error:
            raise evaluation_error(str(error)) from None
        if result.type() == self._error:
            raise evaluation_error(_complaint(result))
        return self._decoded(result.plain_value())

    def _is_too_much(self, given: Values, values: Mapping[str, Any]) -> bool:
        """A quick bound by the size of everything; only where that is too much, each part by its own size."""
        measures = [given.measure(name) for name in values]
        handed_over = sum(each.parts for each in measures) * _HANDED_OVER
        if handed_over > PER_CALL_LIMIT:
            return True
        size = max((each.size for each in measures), default=1)
        if handed_over + self._bound(1 << size.bit_length()) <= PER_CALL_LIMIT:
            return False
        actual = {name: Actual([each]) for name, each in values.items()}
        return handed_over + self._work.estimate(self._tree.root, actual) > PER_CALL_LIMIT

    def _bound(self, size: int) -> int:
        found = self._bounds.get(size)
        if found is None:
            shapes = dict.fromkeys(self._environment.variables, Bounded(size))
            found = self._bounds[size] = self._work.estimate(self._tree.root, shapes)
        return found

    def _decoded(self, value: Any) -> Any:
        if isinstance(value, bytearray | bytes):
            codec = next((each for each in self._environment.library.codecs if each.owns(value)), None)
            return bytes(value) if codec is None else codec.decode(value)
        return value
