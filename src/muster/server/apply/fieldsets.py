"""Sets of field paths in the form that `managedFields` stores them (FieldsV1), used as they are.

A set is a nested dict. A key is a path element (`f:name`, `k:{"name":"a"}`, `v:"x"`); its value holds what lies below.
An element is itself a member when its value is empty or has the key `.`. No operation changes its arguments; results
may share parts with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

FieldSet = dict[str, Any]

SELF = "."


def is_member(node: FieldSet) -> bool:
    return not node or SELF in node


def _node(member: bool, children: FieldSet) -> FieldSet | None:
    if not children:
        return {} if member else None
    return {SELF: {}, **children} if member else children


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Everything in either set."""
    if not left or not right:
        return left or right
    result = dict(left)
    for key, node in right.items():
        mine = result.get(key)
        if key == SELF or mine is None:
            result[key] = node
        elif mine is not node and mine != node:
            member = is_member(mine) or is_member(node)
            merged = union(_children(mine), _children(node))
            result[key] = {SELF: {}, **merged} if member and merged else merged
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Everything in the left set that is not in the right one. A member below a removed one stays."""
    if not left or not right:
        return left
    result: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        if key == SELF:
            continue
        if other is None:
            result[key] = node
            continue
        kept = _node(is_member(node) and not is_member(other), difference(_children(node), _children(other)))
        if kept is not None:
            result[key] = kept
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Everything in both sets."""
    result: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        if key == SELF or other is None:
            continue
        kept = _node(is_member(node) and is_member(other), intersection(_children(node), _children(other)))
        if kept is not None:
            result[key] = kept
    return result


def _children(node: FieldSet) -> FieldSet:
    return {key: value for key, value in node.items() if key != SELF} if SELF in node else node


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Every member as Kubernetes writes a path: `.spec.containers[name="a"].image`. Sorted."""
    for key in sorted(fields):
        if key == SELF:
            continue
        path = prefix + element_text(key)
        if is_member(fields[key]):
            yield path
        yield from paths(fields[key], path)


def element_text(element: str) -> str:
    """One element of a path as Kubernetes writes it."""
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "v":
        return f"[={rest}]"
    if kind == "k":
        try:
            keys = msgspec.json.decode(rest)
        except msgspec.MsgspecError:
            return f"[{rest}]"
        if isinstance(keys, dict):
            return "[" + ",".join(f"{name}={_json(keys[name])}" for name in sorted(keys)) + "]"
    return f"[{rest}]"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def well_formed(value: Any) -> bool:
    """Whether a value a client sent as fieldsV1 is a set at all."""
    if not isinstance(value, dict):
        return False
    return all(
        key == SELF or (key[:2] in ("f:", "k:", "v:", "i:") and well_formed(node)) for key, node in value.items()
    )
