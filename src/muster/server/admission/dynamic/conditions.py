"""Match conditions of webhooks and policies: expressions that must all be true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muster.cel import CompileError, Environment, EvaluationError, Program, Values, compile
from muster.server.resources.kind import Obj


class ConditionError(Exception):
    """A condition that has no value: the failure policy decides."""


class Condition(NamedTuple):
    """A named expression; one that does not compile fails when it is asked."""

    name: str
    program: Program | CompileError


def compiled(conditions: Sequence[Obj], environment: Environment) -> list[Condition]:
    return [Condition(each["name"], compile(each["expression"], environment)) for each in conditions]


def hold(conditions: Sequence[Condition], values: Values) -> bool:
    """Whether all are true. One that is false decides, whatever the others are; else an error is raised."""
    problems: list[str] = []
    for name, program in conditions:
        if isinstance(program, CompileError):
            problems.append(program.message)
            continue
        try:
            if program.evaluate(values) is not True:
                return False
        except EvaluationError as error:
            problems.append(f"expression '{program.text}' resulted in error: {error}")
        del name
    if problems:
        raise ConditionError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True
