"""Strategic merge patch: a merge patch that knows which lists are keyed, from the schema tables.

Directives: `$patch: replace|delete|merge` in an object or list element, `$retainKeys` in an object,
`$setElementOrder/<list>` and `$deleteFromPrimitiveList/<list>` beside a list. A patch of the wrong form is a 400, one
that contradicts itself a 422. Elements that only the server has keep their order among themselves; elements of the
patch keep the patch's order; where both could come first, the patch's do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from muster.api.errors import ApiError, bad_request, unsupported_media_type
from muster.server.request import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from muster.server.schema import Field, Message

Obj = dict[str, Any]

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


class _Elements(NamedTuple):
    """The context inside a map whose values are messages."""

    message: Message


_Context = Message | _Elements | None


class _Rule(NamedTuple):
    """What the schema says of one key: how its value merges and what lies inside it."""

    strategy: tuple[str, ...]
    merge_key: str
    inside: _Context


_PLAIN = _Rule((), "", None)


def apply(current: Obj, patch: Any, message: Message | None) -> Obj:
    """The object with the patch merged in; 415 for a kind without a schema."""
    if message is None:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_PATCH}"
        )
    if type(patch) is not dict:
        raise bad_request("error decoding patch: a strategic merge patch must be an object")
    try:
        return _merge_map(current, patch, message)
    except RecursionError:
        raise bad_request("error decoding patch: nested too deeply") from None


def _rule(context: _Context, key: str) -> _Rule:
    if isinstance(context, Message):
        field = context.fields.get(key)
        return _field_rule(field) if field else _PLAIN
    return _Rule((), "", context.message) if context else _PLAIN


def _field_rule(field: Field) -> _Rule:
    inside: _Context = field.message
    if inside is not None and field.shape == "map":
        inside = _Elements(inside)
    return _Rule(field.patch_strategy, field.merge_key, inside)


# --- objects -------------------------------------------------------------------------------------------


def _merge_map(original: Obj, patch: Obj, context: _Context) -> Obj:
    directive = patch.get(_PATCH, "merge")
    if directive == "replace":
        return {key: _cleaned(value) for key, value in patch.items() if key != _PATCH and _kept(value)}
    if directive == "delete":
        return {}
    if directive != "merge":
        raise bad_request(f"unknown patch type: {directive!r}")
    result = _retained(original, patch) if _RETAIN in patch else dict(original)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            _delete_primitives(result, key.removeprefix(_DELETE), value)
    ordered = {key.removeprefix(_ORDER): value for key, value in patch.items() if key.startswith(_ORDER)}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_key(result, key, value, _rule(context, key), ordered.get(key))
        elif key not in (_PATCH, _RETAIN) and not key.startswith((_ORDER, _DELETE)):
            result[key] = value  # an unknown field like any other: field validation will say so
    for key, order in ordered.items():
        if key not in patch and type(result.get(key)) is list:
            _check_order([], order, _rule(context, key).merge_key)
            result[key] = _arranged(result[key], order, result[key], _rule(context, key).merge_key)
    return result


def _merge_key(result: Obj, key: str, value: Any, rule: _Rule, order: Any) -> None:
    if order is not None and type(value) is list:
        _check_order(value, order, rule.merge_key)
    if value is None:
        result.pop(key, None)
        return
    present: Any = result.get(key)
    if type(present) is not type(value):
        if _kept(value):
            result[key] = _cleaned(value)
        else:
            result.pop(key, None)
    elif type(value) is dict:
        replace = rule.strategy and "replace" in rule.strategy
        result[key] = _cleaned(value) if replace else _merge_map(present, value, rule.inside)
    elif type(value) is list:
        result[key] = _merge_list(present, value, rule, order) if "merge" in rule.strategy else _cleaned(value)
    else:
        result[key] = value


def _retained(original: Obj, patch: Obj) -> Obj:
    keep = patch[_RETAIN]
    if type(keep) is not list or not all(type(name) is str for name in keep):
        raise bad_request("The patch contains an invalid $retainKeys list")
    names = set(keep)
    for key, value in patch.items():
        if value is not None and key not in names and not key.startswith("$"):
            raise bad_request(f"The patch sets {key!r}, which its $retainKeys list does not keep")
    return {key: value for key, value in original.items() if key in names}


def _delete_primitives(result: Obj, key: str, values: Any) -> None:
    if type(values) is not list or any(isinstance(value, dict | list) for value in values):
        raise bad_request("Invalid patch format of primitive list")
    present = result.get(key)
    if type(present) is list:
        result[key] = [value for value in present if value not in values]


def _kept(value: Any) -> bool:
    """Whether a value of the patch stands for content, and not for a deletion."""
    return value is not None and not (type(value) is dict and _PATCH in value)


def _cleaned(value: Any) -> Any:
    """A value of the patch as content: without directives and nulls."""
    if type(value) is dict:
        return {key: _cleaned(item) for key, item in value.items() if _kept(item) and not _is_directive(key)}
    if type(value) is list:
        return [_cleaned(item) for item in value if not (type(item) is dict and _PATCH in item)]
    return value


def _is_directive(key: str) -> bool:
    return key.startswith("$") and (key in (_PATCH, _RETAIN) or key.startswith((_ORDER, _DELETE)))


# --- lists ---------------------------------------------------------------------------------------------


def _merge_list(original: list[Any], patch: list[Any], rule: _Rule, order: Any) -> list[Any]:
    if not original and not patch:
        return original
    elements = {dict if type(item) is dict else list if type(item) is list else str for item in (*original, *patch)}
    if list in elements:
        raise _contradiction("lists of lists cannot be merged")
    if len(elements) > 1:
        raise bad_request("the elements of a list must be of one type")
    if dict not in elements:
        merged = list(dict.fromkeys([*original, *patch]))
        return _arranged(merged, patch if order is None else order, original, "")
    if not rule.merge_key:
        raise bad_request("cannot merge lists without merge key")
    base, additions = _special_elements(original, patch, rule.merge_key)
    merged = _merge_elements(base, additions, rule)
    return _arranged(merged, additions if order is None else order, base, rule.merge_key)


def _special_elements(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """What `$patch` elements leave of the original, and the elements that are left to merge."""
    additions: list[Any] = []
    deleted: set[str] = set()
    replace = False
    for item in patch:
        directive = item.get(_PATCH, "merge")
        if directive == "delete":
            deleted.add(_key_of(item, merge_key))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            additions.append({key: value for key, value in item.items() if key != _PATCH})
        else:
            raise bad_request(f"unknown patch type: {directive!r}")
    if replace:
        return [_cleaned(item) for item in additions], []
    return [item for item in original if str(item.get(merge_key)) not in deleted], additions


def _merge_elements(base: list[Any], additions: list[Any], rule: _Rule) -> list[Any]:
    merged = list(base)
    position: dict[str, int] = {}
    for index, item in enumerate(merged):
        position.setdefault(str(item.get(rule.merge_key)), index)
    for item in additions:
        key = _key_of(item, rule.merge_key)
        at = position.get(key)
        if at is None:
            position[key] = len(merged)
            merged.append(_cleaned(item))
        else:
            merged[at] = _merge_map(merged[at], item, rule.inside)
    return merged


def _key_of(item: Any, merge_key: str) -> str:
    if type(item) is not dict or merge_key not in item:
        raise bad_request(f"an element of the patch does not contain declared merge key: {merge_key}")
    return str(item[merge_key])


def _identity(item: Any, merge_key: str) -> str:
    """What tells one element from another. Stored elements may lack their key: Kubernetes omits empty ones."""
    return str(item.get(merge_key)) if type(item) is dict else str(item)


def _check_order(patch: list[Any], order: Any, merge_key: str) -> None:
    """The elements of the patch must stand in its own order list, in that order."""
    if type(order) is not list:
        raise bad_request("The $setElementOrder directive must be a list")
    places = {_identity(item, merge_key): index for index, item in enumerate(order)}
    last = -1
    for item in patch:
        if type(item) is dict:
            if _PATCH in item:
                continue
            _key_of(item, merge_key)
        place = places.get(_identity(item, merge_key), -1)
        if place < last or place < 0:
            raise bad_request("The order in the patch list does not match the $setElementOrder list")
        last = place


def _arranged(merged: list[Any], order: list[Any], server: list[Any], merge_key: str) -> list[Any]:
    """The merged elements: those that `order` names in its order, the others in the server's, woven together."""
    wanted = {_identity(item, merge_key): index for index, item in reversed(list(enumerate(order)))}
    served = {_identity(item, merge_key): index for index, item in reversed(list(enumerate(server)))}
    named = [item for item in merged if _identity(item, merge_key) in wanted]
    others = [item for item in merged if _identity(item, merge_key) not in wanted]
    named.sort(key=lambda item: wanted[_identity(item, merge_key)])
    others.sort(key=lambda item: served.get(_identity(item, merge_key), -1))
    result: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(named):
        other, name = (_identity(item, merge_key) for item in (others[left], named[right]))
        if other in served and name in served and served[other] < served[name]:
            result.append(others[left])
            left += 1
        else:
            result.append(named[right])
            right += 1
    return result + others[left:] + named[right:]


def _contradiction(words: str) -> ApiError:
    return ApiError(422, "Invalid", f"the server rejected our request due to an error in our request: {words}")
