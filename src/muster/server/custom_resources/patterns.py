"""Regular expressions of schemas, in the syntax of Go and without its traps: matching takes linear time.

The expressions of RE2 are those of the evaluator of CEL, which is used for them. Where that is not installed, Python's
own stand in, which know most of the syntax but can be slow.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

import msgspec

from muster import cel

Matches = Callable[[str], bool]


class PatternError(ValueError):
    """A text that is no regular expression."""


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Matches:
    """Whether a text contains a match. Raises PatternError."""
    try:
        environment = _environment()
    except cel.CelMissingError:
        return _python(pattern)
    program = cel.compile(f"self.matches({msgspec.json.encode(pattern).decode()})", environment, returns=cel.BOOL)
    if isinstance(program, cel.CompileError):
        raise PatternError(f"error parsing regexp: `{pattern}`")
    return lambda text: _evaluated(program, text)


async def compile_patterns(schema: Any) -> None:
    """Compile all patterns of a schema, and let others have their turn between them."""
    if isinstance(schema, list):
        for each in schema:
            await compile_patterns(each)
    elif isinstance(schema, dict):
        pattern: Any = schema.get("pattern")
        if isinstance(pattern, str):
            with suppress(PatternError):  # said where the definition is validated
                compiled(pattern)
            await asyncio.sleep(0)
        for each in schema.values():
            if isinstance(each, dict | list):
                await compile_patterns(each)


@cache
def _environment() -> cel.Environment:
    return cel.Environment({"self": cel.STRING})


def _evaluated(program: cel.Program, text: str) -> bool:
    try:
        return program.evaluate({"self": text}) is True
    except cel.EvaluationError:  # a text so long that the search would take too long matches nothing
        return False


def _python(pattern: str) -> Matches:
    # Go lets flags stand anywhere; Python wants those of the whole expression first.
    flags = "".join(re.findall(r"\(\?([ims]+)\)", pattern))
    plain = re.sub(r"\(\?[ims]+\)", "", pattern)
    try:
        found = re.compile(f"(?{flags}){plain}" if flags else plain)
    except (re.error, RecursionError, OverflowError) as wrong:
        raise PatternError(str(wrong)) from None
    return lambda text: found.search(text) is not None
