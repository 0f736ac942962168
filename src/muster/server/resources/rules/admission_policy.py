"""ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings: defaults and rules."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.cel import BOOL, STRING
from muster.cel.types import escaped
from muster.server.resources.kind import Obj
from muster.server.resources.rules.admission_matching import (
    choice,
    default_rule,
    validate_conditions,
    validate_expression,
    validate_rule,
    validate_selector,
)
from muster.server.resources.rules.fields import duplicate, forbidden, invalid, not_supported, required
from muster.server.resources.rules.mutation_expressions import validate_mutation

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_SHOWN_REASONS = _REASONS[:3]
_ACTIONS = ("Audit", "Deny", "Warn")
_BOTH = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)
_AT_LEAST_ONE = "validations or auditAnnotations must contain at least one item"
_EXCLUSIVE = "name and selector are mutually exclusive"


def default(obj: Obj) -> None:
    """Of both kinds of policies."""
    spec: Obj = obj.get("spec") or {}
    spec.setdefault("failurePolicy", "Fail")
    if "matchConstraints" in spec:
        _default_match(spec["matchConstraints"])


def default_binding(obj: Obj) -> None:
    spec: Obj = obj.get("spec") or {}
    if "matchResources" in spec:
        _default_match(spec["matchResources"])


def _default_match(match: Obj) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rule in (*(match.get("resourceRules") or ()), *(match.get("excludeResourceRules") or ())):
        default_rule(rule)


def validate_validating(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    found = _validate_common(spec)
    params, variables = bool(spec.get("paramKind")), variable_names(spec)
    validations: Sequence[Obj] = spec.get("validations") or ()
    annotations: Sequence[Obj] = spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        found += [required("spec.validations", _AT_LEAST_ONE), required("spec.auditAnnotations", _AT_LEAST_ONE)]
    for at, each in enumerate(validations):
        found += _validate_validation(f"spec.validations[{at}]", each, variables, params)
    for at, each in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{at}]", f"{new['metadata'].get('name', '')}/{each.get('key', '')}"
        found += [invalid(f"{path}.key", key, text) for text in formats.qualified_name(key)]
        text = each.get("valueExpression", "")
        found += validate_expression(f"{path}.valueExpression", text, variables, None, params=params)
    return found


def validate_mutating(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    found = _validate_common(spec)
    params, variables = bool(spec.get("paramKind")), variable_names(spec)
    if not spec.get("mutations"):
        found.append(required("spec.mutations", "mutations must contain at least one item"))
    for at, each in enumerate(spec.get("mutations") or ()):
        found += validate_mutation(f"spec.mutations[{at}]", each, variables, params=params)
    if not spec.get("reinvocationPolicy"):
        found.append(required("spec.reinvocationPolicy"))
    else:
        found += choice("spec.reinvocationPolicy", spec["reinvocationPolicy"], ("IfNeeded", "Never"))
    return found


def variable_names(spec: Obj) -> tuple[str, ...]:
    return tuple(each.get("name", "") for each in spec.get("variables") or ())


def _validate_common(spec: Obj) -> list[FieldError]:
    found = choice("spec.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore"))
    if (kind := spec.get("paramKind")) is not None:
        found += [required(f"spec.paramKind.{name}") for name in ("apiVersion", "kind") if not kind.get(name)]
        written: str = kind.get("apiVersion") or ""
        if written.count("/") > 1:
            words = f"unexpected GroupVersion string: {written}"
            found.append(invalid("spec.paramKind.apiVersion", written, words))
    match = spec.get("matchConstraints")
    if match is None:
        found.append(required("spec.matchConstraints"))
    else:
        found += _validate_match("spec.matchConstraints", match)
        if not match.get("resourceRules"):
            found.append(required("spec.matchConstraints.resourceRules"))
    params = bool(kind)
    found += validate_conditions("spec.matchConditions", spec.get("matchConditions") or (), params=params)
    return found + _validate_variables(spec.get("variables") or (), params)


def _validate_variables(variables: Sequence[Obj], params: bool) -> list[FieldError]:
    """Each may use those before it."""
    found: list[FieldError] = []
    known: list[str] = []
    for at, each in enumerate(variables):
        path, name = f"spec.variables[{at}]", each.get("name", "")
        if not name:
            found.append(required(f"{path}.name", "name is not specified"))
        elif escaped(name) != name:
            found.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
        text = each.get("expression", "")
        found += validate_expression(f"{path}.expression", text, tuple(known), None, params=params)
        known.append(name)
    return found


def _validate_match(path: str, match: Obj) -> list[FieldError]:
    found = validate_selector(f"{path}.namespaceSelector", match.get("namespaceSelector"))
    found += validate_selector(f"{path}.objectSelector", match.get("objectSelector"))
    for field in ("resourceRules", "excludeResourceRules"):
        for at, rule in enumerate(match.get(field) or ()):
            here = f"{path}.{field}[{at}]"
            found += validate_rule(here, rule)
            names: Sequence[str] = rule.get("resourceNames") or ()
            found += [
                duplicate(f"{here}.resourceNames[{place}]", name)
                for place, name in enumerate(names)
                if name in names[:place]
            ]
    return found + choice(f"{path}.matchPolicy", match.get("matchPolicy"), ("Equivalent", "Exact"))


def _validate_validation(path: str, given: Obj, variables: tuple[str, ...], params: bool) -> list[FieldError]:
    text: str = given.get("expression", "")
    if not text.strip():
        return [required(f"{path}.expression", "expression is not specified")]
    found = validate_expression(f"{path}.expression", text, variables, BOOL, params=params)
    message: str = given.get("message") or ""
    if message and not message.strip():
        found.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message:
        found.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    if written := given.get("messageExpression"):
        found += validate_expression(f"{path}.messageExpression", written, variables, STRING, params=params)
    reason = given.get("reason")
    if reason is not None and reason not in _REASONS:
        found.append(not_supported(f"{path}.reason", reason, _SHOWN_REASONS))
    return found


def validate_validating_binding(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    actions: Sequence[str] = spec.get("validationActions") or ()
    found = validate_binding(new, old, subresource)
    if not actions:
        found.append(required("spec.validationActions"))
    for at, action in enumerate(actions):
        if action not in _ACTIONS:
            found.append(not_supported(f"spec.validationActions[{at}]", action, _ACTIONS))
        elif action in actions[:at]:
            found.append(duplicate(f"spec.validationActions[{at}]", action))
    if "Deny" in actions and "Warn" in actions:
        found.append(invalid("spec.validationActions", actions, _BOTH))
    return found


def validate_binding(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    found = [] if spec.get("policyName") else [required("spec.policyName")]
    if (ref := spec.get("paramRef")) is not None:
        found += _validate_param_ref("spec.paramRef", ref)
    if (match := spec.get("matchResources")) is not None:
        found += _validate_match("spec.matchResources", match)
    return found


def _validate_param_ref(path: str, ref: Obj) -> list[FieldError]:
    found: list[FieldError] = []
    if ref.get("name") and ref.get("selector") is not None:
        found += [forbidden(f"{path}.name", _EXCLUSIVE), forbidden(f"{path}.selector", _EXCLUSIVE)]
    elif not ref.get("name") and ref.get("selector") is None:
        found.append(required(path, "one of name or selector must be specified"))
    action = ref.get("parameterNotFoundAction")
    if not action:
        found.append(required(f"{path}.parameterNotFoundAction"))
    else:
        found += choice(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))
    return found
