"""What can be wrong with an expression, in the words of Kubernetes' own evaluator."""

from __future__ import annotations

import re
from dataclasses import dataclass

PACKAGE = "cel-expr-python"


class CelMissingError(Exception):
    """The evaluator is not installed on this machine."""

    def __init__(self, why: str) -> None:
        super().__init__(f"CEL expressions cannot be evaluated here: the package {PACKAGE} is missing ({why})")


@dataclass(frozen=True, slots=True)
class CompileError:
    """Why an expression is not one: with the place, as Kubernetes shows it. A value, because callers report it."""

    message: str


class EvaluationError(Exception):
    """An expression that is well formed but has no result on these values."""


_CODE = re.compile(r"^[A-Z_]+: ")
_COMPILE_WORDS = (
    (re.compile(r"undefined field '([^']*)' not found in struct '[^']*'"), r"undefined field '\1'"),
    (re.compile(r"type '[^']*' does not support field selection"), "type does not support field selection"),
)
_EVALUATION_WORDS = (
    (re.compile(r'^Key not found in map : "?(.*?)"?$', re.DOTALL), r"no such key: \1"),
    (re.compile(r"^Index error: index=(-?\d+) size=\d+$"), r"index out of bounds: \1"),
    (re.compile(r"^divide by zero$"), "division by zero"),
    (re.compile(r"^modulus by zero$"), "modulus by zero"),
    (
        re.compile(r"^(No matching overloads found|no matching overload|No such overload).*$", re.DOTALL),
        "no such overload",
    ),
    (re.compile(r"^Applying SELECT to non-message type$"), "no such overload"),
    (re.compile(r"^Iteration budget exceeded$"), "the evaluation takes more than 10000 iterations"),
)


def compile_error(raised: Exception) -> CompileError:
    """The evaluator's complaint about a text, without its own codes around it."""
    text = _CODE.sub("", str(raised))
    text = re.sub(r" \[[A-Z_]+\]$", "", text)
    for pattern, words in _COMPILE_WORDS:
        text = pattern.sub(words, text)
    return CompileError(text)


def evaluation_error(text: str) -> EvaluationError:
    """The evaluator's complaint about values."""
    text = re.sub(r" \[[A-Z_]+\]$", "", _CODE.sub("", text))
    for pattern, words in _EVALUATION_WORDS:
        text = pattern.sub(words, text)
    return EvaluationError(text)
