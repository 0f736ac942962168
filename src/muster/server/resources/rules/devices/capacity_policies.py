"""Capacities of devices that may be shared, and the policies by which requests of a part of them are rounded."""

from __future__ import annotations

from typing import Any

from muster.api import quantity
from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules.devices.device_fields import limited
from muster.server.resources.rules.fields import duplicate, forbidden, invalid, required

_MOST_VALUES = 10
_ONE_POLICY = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'


def capacity(path: str, given: Obj, *, shareable: bool) -> list[FieldError]:
    """One capacity of a device."""
    policy: Obj | None = given.get("requestPolicy")
    if policy is None:
        return []
    here = f"{path}.requestPolicy"
    if not shareable:
        return [forbidden(here, "allowMultipleAllocations must be true")]
    values: list[Any] = policy.get("validValues") or []
    bounds: Obj | None = policy.get("validRange")
    if values and bounds is not None:
        return [forbidden(here, _ONE_POLICY)]
    if values:
        return _valid_values(here, values, policy.get("default"), given.get("value"))
    if bounds is not None:
        return _valid_range(f"{here}.validRange", here, bounds, policy.get("default"), given.get("value"))
    return []


def _valid_values(path: str, values: list[Any], default: Any, value: Any) -> list[FieldError]:
    here = f"{path}.validValues"
    found = limited(here, values, _MOST_VALUES)
    if default is None:
        return [*found, required(f"{path}.default", "required when validValues is defined")]
    amounts = [_nanos(each) for each in values]
    for position, amount in enumerate(amounts):
        told = f"{here}[{position}]"
        if amount > _nanos(value):
            text = f"option is larger than capacity value: {_text(value)}"
            found.append(invalid(told, _text(values[position]), text))
        if amount in amounts[:position]:
            found.append(duplicate(told, _text(values[position])))
        elif position and amount < amounts[position - 1]:
            found.append(invalid(told, _text(values[position]), "values must be sorted in ascending order"))
    if _nanos(default) not in amounts:
        found.append(invalid(here, _text(default), "default value is not valid according to the requestPolicy"))
    return found


def _valid_range(path: str, policy: str, bounds: Obj, default: Any, value: Any) -> list[FieldError]:
    least, most, step = bounds.get("min"), bounds.get("max"), bounds.get("step")
    if default is None:
        return [required(f"{policy}.default", "required when validRange is defined")]
    if least is None:
        return [required(f"{path}.min", "required when validRange is defined")]
    found: list[FieldError] = []
    if _nanos(least) > _nanos(value):
        found.append(invalid(f"{path}.min", _text(least), f"min is larger than capacity value: {_text(value)}"))
    if most is not None and _nanos(most) > _nanos(value):
        found.append(invalid(f"{path}.max", _text(most), f"max is larger than capacity value: {_text(value)}"))
    if _nanos(default) < _nanos(least):
        found.append(invalid(f"{path}.default", _text(default), f"default is less than min: {_text(least)}"))
    if most is not None and _nanos(default) > _nanos(most):
        found.append(invalid(f"{path}.default", _text(default), f"default is more than max: {_text(most)}"))
    if step is None:
        return found
    if _nanos(step) <= 0:
        return [*found, invalid(f"{path}.step", _text(step), "must be greater than zero")]
    given = (default, *((most,) if most is not None else ()))
    for each in given:
        if (_nanos(each) - _nanos(least)) % _nanos(step):
            text = f"value is not a multiple of a given step ({_text(step)}) from ({_text(least)})"
            found.append(invalid(f"{path}.step", _text(each), text))
    return found


def _nanos(value: Any) -> int:
    return quantity.parse(value if value is not None else 0).nanos


def _text(value: Any) -> str:
    return quantity.render(quantity.parse(value if value is not None else 0))
