"""The Common Expression Language, as Kubernetes uses it: compile with typed variables, evaluate within a bound.

One evaluator serves device selectors, rules of custom resources and admission policies: `cel-expr-python`. This package
declares to it the types and functions that Kubernetes adds, refuses what Kubernetes refuses (types, sizes, cost) and
turns its errors into Kubernetes' words. It is pure: no I/O, no clock, no randomness.

    environment = Environment({"self": ObjectOf("Self", {"replicas": INT})})
    program = compile("self.replicas > 3", environment)      # a Program, or a CompileError that says why not
    program.evaluate({"self": {"replicas": 4}})              # True; raises EvaluationError

Start reading at `muster.cel.program`.
"""

from muster.cel.environment import Environment
from muster.cel.errors import CelMissingError, CompileError, EvaluationError
from muster.cel.program import PER_CALL_LIMIT, Program, compile
from muster.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    ListOf,
    MapOf,
    ObjectOf,
    OptionalOf,
    Text,
    Type,
)
from muster.cel.values import Values

__all__ = [
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "PER_CALL_LIMIT",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "CelMissingError",
    "CompileError",
    "Environment",
    "EvaluationError",
    "ListOf",
    "MapOf",
    "ObjectOf",
    "OptionalOf",
    "Program",
    "Text",
    "Type",
    "Values",
    "compile",
]
