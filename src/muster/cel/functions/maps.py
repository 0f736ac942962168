"""What the macro `transformMap` needs at run time and the evaluator leaves out."""

from __future__ import annotations

from typing import Any

from muster.cel.functions.function import A, Function
from muster.cel.types import MapOf


def insert(entries: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if key in entries:
        raise ValueError(f"insert failed: key {key!r} already exists")
    return {**entries, key: value}


FUNCTIONS = (Function("cel.@mapInsert", (MapOf(), A, A), MapOf(), insert, member=False, declared=False, walk=1),)
