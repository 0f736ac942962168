"""The field rules that every kind is built from: presence, unions, immutability, formats, list-maps.

Each rule takes the field's path, its new value and, on an update, its old one (`MISSING` on a create
or for an item that is new). Unchanged data is never judged again: `Change.same` is asked before a
field is looked at. Values of a wrong JSON type count as unset here; `muster.api.decoding` has
already refused them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from muster.api.errors import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_MANY,
    FieldError,
)

Obj = dict[str, Any]
Errors = list[FieldError]

MISSING: Final = object()
"""The old value of something that has none: the object, or the item of a list, is new."""

IMMUTABLE = "field is immutable"


class Change(NamedTuple):
    """One field on its way from an old value (or `MISSING`) to a new one."""

    path: str
    new: Any
    old: Any = MISSING

    @property
    def update(self) -> bool:
        return self.old is not MISSING

    @property
    def same(self) -> bool:
        """Nothing changed, so there is nothing to judge. An unset field and a null one are the same."""
        return self.update and self.new == self.old

    def at(self, name: str) -> Change:
        """A field of this object."""
        old = MISSING if self.old is MISSING else _member(self.old, name)
        return Change(f"{self.path}.{name}" if self.path else name, _member(self.new, name), old)


def _member(holder: Any, name: str) -> Any:
    value = cast("Obj", holder).get(name) if isinstance(holder, dict) else None
    return None if value == [] else value  # Kubernetes does not tell an empty list from an absent one


def as_object(value: Any) -> Obj:
    return cast("Obj", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def frozen(change: Change) -> Errors:
    """The field may not change once the object exists."""
    if change.update and not change.same:
        return [FieldError(INVALID, change.path, None, IMMUTABLE)]
    return []


def neither_set_nor_cleared(change: Change) -> Errors:
    """The field stays set, or unset, for ever; what is inside may change."""
    if change.update and change.old is None and change.new is not None:
        return [FieldError(INVALID, change.path, None, "field cannot be set once created")]
    if change.update and change.old is not None and change.new is None:
        return [FieldError(INVALID, change.path, None, "field cannot be cleared once set")]
    return []


def union(change: Change, members: Sequence[str]) -> Errors:
    """Exactly one member is set. Not asked again while the set of chosen members stays the same."""
    chosen = _chosen(change.new, members)
    if change.update and chosen == _chosen(change.old, members):
        return []
    listed = ", ".join(f"`{member}`" for member in members)
    if not chosen:
        return [FieldError(INVALID, change.path, "", f"must specify one of: {listed}")]
    if len(chosen) > 1:
        braced = "{" + ", ".join(chosen) + "}"
        return [FieldError(INVALID, change.path, braced, f"must specify exactly one of: {listed}")]
    return []


def _chosen(holder: Any, members: Sequence[str]) -> list[str]:
    # An empty text is an unset member; an empty object is a set one.
    return [member for member in members if _member(holder, member) not in (None, "")]


def text(change: Change, complaints: Callable[[str], list[str]], *, required: bool = False) -> Errors:
    """A text of some format; empty counts as unset."""
    if change.same:
        return []
    value = as_text(change.new)
    if not value:
        return [FieldError(REQUIRED, change.path)] if required else []
    return [FieldError(INVALID, change.path, value, complaint) for complaint in complaints(value)]


def at_least_one(change: Change) -> Errors:
    """A count that must be given and positive. Zero is what an unset number looks like."""
    if change.same:
        return []
    if not change.new:
        return [FieldError(REQUIRED, change.path)]
    if isinstance(change.new, int) and change.new < 1:
        return [FieldError(INVALID, change.path, change.new, "must be greater than or equal to 1")]
    return []


def at_most(change: Change, limit: int) -> Errors:
    if change.same or not isinstance(change.new, int) or change.new <= limit:
        return []
    return [FieldError(INVALID, change.path, change.new, f"must be less than or equal to {limit}")]


def one_of(change: Change, allowed: Sequence[str]) -> Errors:
    if change.same or not change.new or change.new in allowed:
        return []
    listed = ", ".join(f'"{value}"' for value in allowed)
    return [FieldError(NOT_SUPPORTED, change.path, change.new, f"supported values: {listed}")]


def gated(change: Change, enabled: bool) -> Errors:
    """A field whose gate is off may stay as it is stored, and nothing else."""
    if enabled or change.same or change.new is None:
        return []
    return [FieldError(FORBIDDEN, change.path)]


def too_many(change: Change, limit: int) -> Errors:
    count = len(as_list(change.new))
    if count <= limit:
        return []
    noun = "item" if limit == 1 else "items"
    return [FieldError(TOO_MANY, change.path, count, f"must have at most {limit} {noun}")]


def items_by_name(change: Change) -> tuple[list[Change], Errors]:
    """The items of a list-map keyed by `name`, each beside its old self, and the errors about repeated names."""
    old = {as_text(as_object(item).get("name")): item for item in as_list(change.old)} if change.update else {}
    items: list[Change] = []
    errors: Errors = []
    seen: set[str] = set()
    for index, item in enumerate(as_list(change.new)):
        name = as_text(as_object(item).get("name"))
        path = f"{change.path}[{index}]"
        if name in seen:
            errors.append(FieldError(DUPLICATE, path, item))
        seen.add(name)
        items.append(Change(path, item, old.get(name, MISSING)))
    return items, errors


def fixed_items(change: Change, items: Sequence[Change]) -> Errors:
    """On an update the list keeps its items: none may be added, none removed."""
    if not change.update:
        return []
    errors = [FieldError(FORBIDDEN, item.path, None, "item may not be added") for item in items if not item.update]
    names = {as_text(as_object(item.new).get("name")) for item in items}
    gone = [item for item in as_list(change.old) if as_text(as_object(item).get("name")) not in names]
    return errors + [FieldError(FORBIDDEN, change.path, None, "item may not be removed") for _ in gone]
