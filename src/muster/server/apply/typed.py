"""Walks objects by their ownership rules: what changed, what a configuration owns, merging, and pruning.

All functions are pure; results share what did not change with their arguments.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from muster.server.apply.fieldsets import SELF, FieldSet, element_text, is_member
from muster.server.apply.rules import AssociativeList, Granular, Rule

Obj = dict[str, Any]

_MISSING = object()


class Changes(NamedTuple):
    """The fields that differ between two objects."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def any(self) -> bool:
        return bool(self.added or self.modified or self.removed)


# --- comparing -----------------------------------------------------------------------------------------


def compare(old: Obj, new: Obj, rule: Granular) -> Changes:
    """What must happen to the old object to become the new one."""
    changes = Changes({}, {}, {})
    if old is not new:
        _compare_members(old, new, rule, changes)
    return changes


def _compare(key: str, old: Any, new: Any, rule: Rule, into: Changes) -> None:
    if old is new:
        return
    if old is _MISSING:
        into.added[key] = _everything(new, rule)
    elif new is _MISSING:
        into.removed[key] = _everything(old, rule)
    elif old == new and type(old) is type(new):
        return
    elif isinstance(rule, Granular) and _divides(old, new, dict):
        _descend(key, _compare_members, old or {}, new or {}, rule, into)
    elif isinstance(rule, AssociativeList) and _divides(old, new, list):
        _descend(key, _compare_elements, old or [], new or [], rule, into)
    else:
        into.modified[key] = {}


def _divides(old: Any, new: Any, container: type) -> bool:
    """Whether both values can be taken apart; a null stands for an empty one, two empty ones are leaves."""
    return (
        (old is None or type(old) is container) and (new is None or type(new) is container) and (bool(old) or bool(new))
    )


def _descend(key: str, walk: Any, old: Any, new: Any, rule: Any, into: Changes) -> None:
    below = Changes({}, {}, {})
    walk(old, new, rule, below)
    for whole, part in zip(into, below, strict=True):
        if part:
            whole[key] = part


def _compare_members(old: Obj, new: Obj, rule: Granular, into: Changes) -> None:
    for key, value in new.items():
        inner = rule.of(key)
        before = old.get(key, None if inner.from_null else _MISSING)
        if before is not value:
            _compare("f:" + key, before, value, inner, into)
    for key, value in old.items():
        if key not in new:
            inner = rule.of(key)
            _compare("f:" + key, value, None if inner.from_null else _MISSING, inner, into)


def _compare_elements(old: list[Any], new: list[Any], rule: AssociativeList, into: Changes) -> None:
    before, after = _by_name(old, rule), _by_name(new, rule)
    for name, items in after.items():
        if name is None:
            continue
        _compare_groups(name, before.get(name, ()), items, rule, into)
    for name, items in before.items():
        if name is not None and name not in after:
            _compare_groups(name, items, (), rule, into)


def _by_name(items: list[Any], rule: AssociativeList) -> dict[str | None, list[Any]]:
    found: dict[str | None, list[Any]] = {}
    for item in items:
        found.setdefault(rule.name(item), []).append(item)
    return found


def _compare_groups(name: str, old: Any, new: Any, rule: AssociativeList, into: Changes) -> None:
    """Elements of one name on both sides; where a name is repeated, the repetitions are one value."""
    if len(old) <= 1 and len(new) <= 1:
        _compare(name, old[0] if old else _MISSING, new[0] if new else _MISSING, rule.element, into)
    elif len(old) >= 2 and len(new) >= 2:
        if old != new:
            into.modified[name] = {}
    elif len(old) >= 2:
        into.removed[name] = {}
        if new:
            into.added[name] = _everything(new[0], rule.element)
    else:
        into.added[name] = {}
        if old:
            into.removed[name] = _everything(old[0], rule.element)


def _everything(value: Any, rule: Rule) -> FieldSet:
    """A value that came or went as a whole: itself and all its parts."""
    parts: FieldSet = {}
    if type(value) is dict and isinstance(rule, Granular):
        for key, item in value.items():
            # Most fields hold scalars, which have no parts: not asking for their rule halves the cost of a create.
            divides = type(item) is dict or type(item) is list
            parts["f:" + key] = _everything(item, rule.of(key)) if divides else {}
    elif type(value) is list and isinstance(rule, AssociativeList):
        for name, items in _by_name(value, rule).items():
            if name is not None:
                parts[name] = _everything(items[0], rule.element) if len(items) == 1 else {}
    if parts:
        parts[SELF] = {}
    return parts


# --- owning --------------------------------------------------------------------------------------------


class Repeated(ValueError):
    """A list of a configuration names one element twice."""


def owned(config: Obj, rule: Granular) -> FieldSet:
    """The fields that a configuration sets."""
    return _owned_members(config, rule)


def _owned(value: Any, rule: Rule) -> FieldSet | None:
    if isinstance(rule, Granular) and type(value) is dict:
        return _owned_members(value, rule) or (None if value else {})
    if isinstance(rule, AssociativeList) and type(value) is list:
        found: FieldSet = {}
        for item in value:
            name = rule.name(item)
            if name in found:
                raise Repeated(f"duplicate entries for key {element_text(name)}")
            if name is not None:
                found[name] = _as_member(_owned(item, rule.element))
        return found or None
    return {}


def _owned_members(value: Obj, rule: Granular) -> FieldSet:
    found: FieldSet = {}
    for key, item in value.items():
        node = _owned(item, rule.of(key))
        if not rule.named:
            node = _as_member(node)
        if node is not None:
            found["f:" + key] = node
    return found


def _as_member(node: FieldSet | None) -> FieldSet:
    return {**node, SELF: {}} if node else {}


# --- merging -------------------------------------------------------------------------------------------


def merge(live: Any, config: Any, rule: Rule) -> Any:
    """The live value with everything that the configuration says."""
    if isinstance(rule, Granular) and type(live) is dict and type(config) is dict:
        result = dict(live)
        for key, value in config.items():
            result[key] = merge(live[key], value, rule.of(key)) if key in live else value
        return result
    if isinstance(rule, AssociativeList) and type(live) is list and type(config) is list:
        return _merge_elements(live, config, rule)
    return config


def _merge_elements(live: list[Any], config: list[Any], rule: AssociativeList) -> list[Any]:
    """In the configuration's order, with the elements that only the live list has where they were among the others."""
    mine = {rule.name(item): item for item in reversed(live)}
    wanted = {rule.name(item): item for item in config}
    theirs, ours = [rule.name(item) for item in live], list(wanted)
    shared = iter([name for name in ours if name in mine])
    upcoming = next(shared, _MISSING)
    placed: set[Any] = set()
    result: list[Any] = []
    left = right = 0
    while left < len(theirs) or right < len(ours):
        name: Any = theirs[left] if left < len(theirs) else _MISSING
        following: Any = ours[right] if right < len(ours) else _MISSING
        if name is not _MISSING and name not in wanted:
            result.append(live[left])
            left += 1
            continue
        if _MISSING not in (name, following, upcoming) and name not in (following, upcoming):
            left += 1  # shared, but the configuration wants another one first
            continue
        left += name in placed or name == following
        if following is not _MISSING:
            result.append(_merged(mine, wanted, following, rule))
            placed.add(following)
            right += 1
        if following == upcoming:
            upcoming = next(shared, _MISSING)
    return result


def _merged(mine: dict[str | None, Any], wanted: dict[str | None, Any], name: str | None, rule: AssociativeList) -> Any:
    return merge(mine[name], wanted[name], rule.element) if name in mine else wanted[name]


# --- pruning -------------------------------------------------------------------------------------------


def prune(value: Any, rule: Rule, last: FieldSet, keep: FieldSet) -> Any:
    """The value without the fields that are in the set `last` and not in `keep`; null where nothing is left of it."""
    if isinstance(rule, Granular) and type(value) is dict:
        return _prune_members(value, rule, last, keep)
    if isinstance(rule, AssociativeList) and type(value) is list:
        return _prune_elements(value, rule, last, keep)
    return value


def _prune_members(value: Obj, rule: Granular, last: FieldSet, keep: FieldSet) -> Obj | None:
    result: Obj = {}
    for key, item in value.items():
        name = "f:" + key
        kept = item if name not in last else _pruned(item, rule.of(key), last[name], keep.get(name))
        if kept is not _MISSING:
            result[key] = kept
    return result if result or not value else None


def _prune_elements(value: list[Any], rule: AssociativeList, last: FieldSet, keep: FieldSet) -> list[Any] | None:
    result: list[Any] = []
    for item in value:
        name = rule.name(item)
        kept = item if name is None or name not in last else _pruned(item, rule.element, last[name], keep.get(name))
        if kept is not _MISSING:
            result.append(kept)
    return result if result or not value else None


def _pruned(value: Any, rule: Rule, last: FieldSet, keep: FieldSet | None) -> Any:
    if keep is None:
        return _MISSING
    if is_member(keep) and not last:
        return value
    return prune(value, rule, last, keep)
