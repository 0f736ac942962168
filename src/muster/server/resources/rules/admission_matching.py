"""Rules that webhook configurations and admission policies share: what they match, and the conditions they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.cel import BOOL, CelMissingError, CompileError, Environment, Type, compile
from muster.cel.evaluator import missing
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
    too_many,
)
from muster.server.resources.rules.policy_expressions import UNDECIDED, environment

OPERATIONS = ("*", "CREATE", "UPDATE", "DELETE", "CONNECT")
_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_MOST_CONDITIONS = 64


def default_rule(rule: Obj) -> None:
    rule.setdefault("scope", "*")


def validate_rule(path: str, rule: Obj) -> list[FieldError]:
    """The operations and resources that something is about."""
    found = _listed(f"{path}.apiGroups", rule.get("apiGroups"), "API groups", empty=True)
    found += _listed(f"{path}.apiVersions", rule.get("apiVersions"), "API versions")
    operations: Sequence[str] = rule.get("operations") or ()
    if not operations:
        found.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        found.append(invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations"))
    for at, operation in enumerate(operations):
        found += one_of(f"{path}.operations[{at}]", operation, OPERATIONS)
    found += _resources(f"{path}.resources", rule.get("resources") or ())
    return found + one_of(f"{path}.scope", rule.get("scope", "*"), ("*", "Cluster", "Namespaced"))


def _listed(path: str, given: Sequence[str] | None, words: str, *, empty: bool = False) -> list[FieldError]:
    values = given or ()
    if not values:
        return [required(path)]
    if len(values) > 1 and "*" in values:
        return [invalid(path, values, f"if '*' is present, must not specify other {words}")]
    return [] if empty else [required(f"{path}[{at}]") for at, value in enumerate(values) if not value]


def _resources(path: str, given: Sequence[str]) -> list[FieldError]:
    if not given:
        return [required(path)]
    found: list[FieldError] = []
    names = {each.partition("/")[0] for each in given if each.endswith("/*")}
    parts = {each.partition("/")[2] for each in given if each.startswith("*/")}
    for at, each in enumerate(given):
        name, slash, part = each.partition("/")
        if not each:
            found.append(required(f"{path}[{at}]"))
        elif slash and part != "*" and name in names:
            found.append(invalid(f"{path}[{at}]", each, f"if '{name}/*' is present, must not specify {each}"))
        elif slash and name != "*" and part in parts:
            found.append(invalid(f"{path}[{at}]", each, f"if '*/{part}' is present, must not specify {each}"))
    if "*/*" in given and len(given) > 1:
        found.append(invalid(path, given, "if '*/*' is present, must not specify other resources"))
    elif "*" in given and any("/" not in each for each in given if each != "*"):
        words = "if '*' is present, must not specify other resources without subresources"
        found.append(invalid(path, given, words))
    return found


def validate_selector(path: str, selector: Obj | None) -> list[FieldError]:
    """A label selector."""
    found: list[FieldError] = []
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        found += [invalid(f"{path}.matchLabels", key, text) for text in formats.qualified_name(key)]
        found += [invalid(f"{path}.matchLabels", value, text) for text in formats.label_value(value)]
    for at, each in enumerate((selector or {}).get("matchExpressions") or ()):
        here, operator, values = f"{path}.matchExpressions[{at}]", each.get("operator", ""), each.get("values") or ()
        if operator in ("In", "NotIn") and not values:
            found.append(required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist") and values:
            words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(forbidden(f"{here}.values", words))
        elif operator not in _SELECTOR_OPERATORS:
            found.append(invalid(f"{here}.operator", operator, "not a valid selector operator"))
        found += [
            invalid(f"{here}.key", each.get("key", ""), text) for text in formats.qualified_name(each.get("key", ""))
        ]
    return found


def validate_conditions(path: str, conditions: Sequence[Obj], *, params: bool = False) -> list[FieldError]:
    """Named expressions that decide whether something is asked at all."""
    found: list[FieldError] = []
    if len(conditions) > _MOST_CONDITIONS:
        found.append(too_many(path, len(conditions), _MOST_CONDITIONS))
    names: set[str] = set()
    for at, each in enumerate(conditions[:_MOST_CONDITIONS]):
        here, name = f"{path}[{at}]", each.get("name", "")
        found += validate_expression(f"{here}.expression", each.get("expression", ""), (), BOOL, params=params)
        if not name:
            found.append(required(f"{here}.name"))
        elif name in names:
            found.append(duplicate(f"{here}.name", name))
        else:
            found += [invalid(f"{here}.name", name, text) for text in formats.qualified_name(name)]
        names.add(name)
    return found


def validate_expression(
    path: str, text: str, variables: tuple[str, ...], returns: Type | None, *, params: bool = False
) -> list[FieldError]:
    """An expression over the request, and over these variables of a policy."""
    if not text.strip():
        return [required(path)]
    if why := missing():
        return [forbidden(path, why)]
    try:
        return validate_in(path, text, environment(UNDECIDED, params=params, variables=variables), returns)
    except CelMissingError as error:
        return [forbidden(path, str(error))]


def validate_in(path: str, text: str, where: Environment, returns: Type | None) -> list[FieldError]:
    compiled = compile(text, where, returns=returns)
    if not isinstance(compiled, CompileError):
        return []
    words = compiled.message
    return [invalid(path, text, words if words.startswith("must evaluate") else f"compilation failed: {words}")]


def choice(path: str, value: Any, allowed: Sequence[str]) -> list[FieldError]:
    """Nothing where it is absent or allowed."""
    return [] if value is None or value in allowed else [not_supported(path, value, allowed)]
