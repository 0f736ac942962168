"""Where a pod wants to be: affinity, tolerations, spreading, and the selectors inside them."""

from __future__ import annotations

from typing import Any

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import duplicate, forbidden, invalid, not_supported, one_of, required

REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_TERMS = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_SELECTOR_OPERATORS, "Gt", "Lt")


def validate_affinity(affinity: Any, path: str) -> list[FieldError]:
    if not affinity:
        return []
    found = _node_affinity(affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        found += _pod_affinity(affinity.get(kind) or {}, f"{path}.{kind}")
    return found


def _node_affinity(affinity: Obj, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    hard = affinity.get(REQUIRED_TERMS)
    if hard is not None:
        found += validate_node_selector(hard, f"{path}.{REQUIRED_TERMS}")
    for position, term in enumerate(affinity.get(PREFERRED_TERMS) or ()):
        here = f"{path}.{PREFERRED_TERMS}[{position}]"
        found += _weight(term.get("weight"), f"{here}.weight")
        found += _node_term(term.get("preference") or {}, f"{here}.preference")
    return found


def validate_node_selector(selector: Obj, path: str) -> list[FieldError]:
    """A node selector has at least one term."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    found: list[FieldError] = []
    for position, term in enumerate(terms):
        found += _node_term(term, f"{path}.nodeSelectorTerms[{position}]")
    return found


def _node_term(term: Obj, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, wanted in enumerate(term.get("matchExpressions") or ()):
        found += _requirement(wanted, f"{path}.matchExpressions[{position}]", _NODE_OPERATORS)
    for position, wanted in enumerate(term.get("matchFields") or ()):
        here = f"{path}.matchFields[{position}]"
        if wanted.get("operator") not in ("In", "NotIn"):
            found.append(invalid(f"{here}.operator", wanted.get("operator"), "not a valid selector operator"))
        if len(wanted.get("values") or ()) != 1:
            found.append(
                required(
                    f"{here}.values",
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                )
            )
        if wanted.get("key") != "metadata.name":
            found.append(invalid(f"{here}.key", wanted.get("key"), "not a valid field selector key"))
    return found


def _requirement(wanted: Obj, path: str, operators: tuple[str, ...]) -> list[FieldError]:
    found: list[FieldError] = []
    operator, values = wanted.get("operator"), wanted.get("values") or ()
    if operator not in operators:
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif operator in ("In", "NotIn") and not values:
        found.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist") and values:
        found.append(forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    elif operator in ("Gt", "Lt") and len(values) != 1:
        found.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    key = wanted.get("key") or ""
    return found + [invalid(f"{path}.key", key, text) for text in formats.qualified_name(key)]


def validate_label_selector(selector: Any, path: str) -> list[FieldError]:
    """A label selector, as in affinity terms, budgets and controllers."""
    found: list[FieldError] = []
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        found += [invalid(f"{path}.matchLabels", key, text) for text in formats.qualified_name(key)]
        found += [invalid(f"{path}.matchLabels", value, text) for text in formats.label_value(value)]
    for position, wanted in enumerate((selector or {}).get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{position}]"
        found += _requirement(wanted, here, _SELECTOR_OPERATORS)
        for index, value in enumerate(wanted.get("values") or ()):
            found += [invalid(f"{here}.values[{index}]", value, text) for text in formats.label_value(value)]
    return found


def _pod_affinity(affinity: Obj, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, term in enumerate(affinity.get(REQUIRED_TERMS) or ()):
        found += _pod_term(term, f"{path}.{REQUIRED_TERMS}[{position}]")
    for position, weighted in enumerate(affinity.get(PREFERRED_TERMS) or ()):
        here = f"{path}.{PREFERRED_TERMS}[{position}]"
        found += _weight(weighted.get("weight"), f"{here}.weight")
        found += _pod_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")
    return found


def _pod_term(term: Obj, path: str) -> list[FieldError]:
    found = validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    found += validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for position, namespace in enumerate(term.get("namespaces") or ()):
        found += [invalid(f"{path}.namespaces[{position}]", namespace, text) for text in formats.dns_label(namespace)]
    found += _topology_key(term.get("topologyKey"), f"{path}.topologyKey", "can not be empty")
    if (term.get("matchLabelKeys") or term.get("mismatchLabelKeys")) and term.get("labelSelector") is None:
        found.append(forbidden(path, "must not be specified when labelSelector is not set"))
    return found


def _topology_key(key: Any, path: str, missing: str) -> list[FieldError]:
    if not key:
        return [required(path, missing)]
    return [invalid(path, key, text) for text in formats.qualified_name(key)]


def _weight(weight: Any, path: str) -> list[FieldError]:
    if isinstance(weight, int) and 1 <= weight <= 100:
        return []
    return [invalid(path, weight, "must be in the range 1-100")]


def validate_tolerations(tolerations: Any, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, toleration in enumerate(tolerations or ()):
        here = f"{path}[{position}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        if key:
            found += [invalid(f"{here}.key", key, text) for text in formats.qualified_name(key)]
        elif operator != "Exists":
            found.append(
                invalid(
                    f"{here}.operator",
                    operator,
                    'operator must be Exists when `key` is empty, which means "match all values and all keys"',
                )
            )
        if operator in ("", "Equal"):
            value = toleration.get("value") or ""
            found += [invalid(f"{here}.operator", value, text) for text in formats.label_value(value)]
        elif operator == "Exists":
            if toleration.get("value"):
                found.append(
                    invalid(f"{here}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
                )
        else:
            found.append(not_supported(f"{here}.operator", operator, ("Equal", "Exists")))
        effect = toleration.get("effect")
        if effect:
            found += one_of(f"{here}.effect", effect, _EFFECTS)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            found.append(
                invalid(f"{here}.effect", effect or "", "effect must be 'NoExecute' when `tolerationSeconds` is set")
            )
    return found


def validate_spread(constraints: Any, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for position, constraint in enumerate(constraints or ()):
        here = f"{path}[{position}]"
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            found.append(invalid(f"{here}.maxSkew", skew, "must be greater than zero"))
        key, action = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
        found += _topology_key(key, f"{here}.topologyKey", "can not be empty")
        found += one_of(f"{here}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if (key, action) in seen:
            found.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        seen.add((key, action))
        found += _min_domains(constraint.get("minDomains"), action, f"{here}.minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None:
                found += one_of(f"{here}.{name}", constraint[name], ("Honor", "Ignore"))
        found += validate_label_selector(constraint.get("labelSelector"), f"{here}.labelSelector")
    return found


def _min_domains(domains: Any, action: str, path: str) -> list[FieldError]:
    if domains is None:
        return []
    found: list[FieldError] = []
    if domains <= 0:
        found.append(invalid(path, domains, "must be greater than zero"))
    if action != "DoNotSchedule":
        found.append(
            invalid(path, domains, f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}")
        )
    return found
