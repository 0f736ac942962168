"""FlowSchemas and PriorityLevelConfigurations: defaults and rules. They limit nothing here; see `docs/api.md`."""

from __future__ import annotations

from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import forbidden, invalid, not_negative, not_supported, one_of, required

_MOST_PRECEDENCE = 10_000
_SUBJECTS = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}


def default_flow_schema(obj: Obj) -> None:
    spec = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def validate_flow_schema(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    precedence = spec.get("matchingPrecedence") or 0
    found: list[FieldError] = []
    if precedence <= 0:
        found.append(invalid("spec.matchingPrecedence", precedence, "must be a positive value"))
    elif precedence > _MOST_PRECEDENCE:
        text = f"must not be greater than {_MOST_PRECEDENCE}"
        found.append(invalid("spec.matchingPrecedence", precedence, text))
    method: Obj | None = spec.get("distinguisherMethod")
    if method is not None:
        found += one_of("spec.distinguisherMethod.type", method.get("type"), ("ByNamespace", "ByUser"))
    if not (spec.get("priorityLevelConfiguration") or {}).get("name"):
        text = "must reference a priority level"
        found.append(required("spec.priorityLevelConfiguration.name", text))
    for position, rule in enumerate(spec.get("rules") or ()):
        found += _rule(rule, f"spec.rules[{position}]")
    return found


def _rule(rule: Obj, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if not rule.get("subjects"):
        found.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for position, subject in enumerate(rule.get("subjects") or ()):
        at = f"{path}.subjects[{position}]"
        kind = subject.get("kind") or ""
        if kind not in _SUBJECTS:
            found.append(not_supported(f"{at}.kind", kind, _SUBJECTS))
            continue
        key = _SUBJECTS[kind]
        if subject.get(key) is None:
            found.append(required(f"{at}.{key}", f"{key} is required when subject kind is '{kind}'"))
        elif not subject[key].get("name"):
            found.append(required(f"{at}.{key}.name"))
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        text = "at least one of resourceRules and nonResourceRules has to be non-empty"
        found.append(required(path, text))
    for position, each in enumerate(rule.get("resourceRules") or ()):
        at = f"{path}.resourceRules[{position}]"
        found += [
            required(f"{at}.{key}", f"{key} must contain at least one value")
            for key in ("verbs", "apiGroups", "resources")
            if not each.get(key)
        ]
        if not each.get("namespaces") and not each.get("clusterScope"):
            found.append(
                required(
                    f"{at}.namespaces", "resource rules that are not cluster scoped must supply at least one namespace"
                )
            )
    for position, each in enumerate(rule.get("nonResourceRules") or ()):
        at = f"{path}.nonResourceRules[{position}]"
        found += [
            required(f"{at}.{key}", f"{key} must contain at least one value")
            for key in ("verbs", "nonResourceURLs")
            if not each.get(key)
        ]
    return found


def default_priority_level(obj: Obj) -> None:
    spec = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    if spec.get("type") == "Exempt":
        exempt = spec.setdefault("exempt", {})
        exempt.setdefault("nominalConcurrencyShares", 0)
        exempt.setdefault("lendablePercent", 0)
    limited = spec.get("limited")
    if limited is not None:
        if limited.get("nominalConcurrencyShares") is None:
            limited["nominalConcurrencyShares"] = 30
        if limited.get("lendablePercent") is None:
            limited["lendablePercent"] = 0
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for key, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                if not queuing.get(key):
                    queuing[key] = value


def validate_priority_level(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    kind, limited = spec.get("type") or "", spec.get("limited")
    found: list[FieldError] = []
    match kind:
        case "Exempt":
            if limited is not None:
                found.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        case "Limited":
            if spec.get("exempt") is not None:
                found.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
            found += (
                _limited(limited)
                if limited is not None
                else [required("spec.limited", "must not be empty when type is Limited")]
            )
        case _:
            found.append(not_supported("spec.type", kind, ("Exempt", "Limited")))
    return found


def _limited(limited: Obj) -> list[FieldError]:
    path = "spec.limited"
    found = not_negative(f"{path}.nominalConcurrencyShares", limited.get("nominalConcurrencyShares"))
    response: Obj = limited.get("limitResponse") or {}
    kind, queuing = response.get("type") or "", response.get("queuing")
    if kind not in ("Queue", "Reject"):
        return [*found, not_supported(f"{path}.limitResponse.type", kind, ("Queue", "Reject"))]
    if kind == "Reject" and queuing is not None:
        found.append(
            forbidden(f"{path}.limitResponse.queuing", "must be nil if limited.limitResponse.type is not Limited")
        )
    if kind == "Queue":
        if queuing is None:
            text = "must not be empty if limited.limitResponse.type is Limited"
            return [*found, required(f"{path}.limitResponse.queuing", text)]
        if queuing.get("handSize", 0) > queuing.get("queues", 0):
            text = f"should not be greater than queues ({queuing.get('queues')})"
            found.append(invalid(f"{path}.limitResponse.queuing.handSize", queuing.get("handSize"), text))
    return found
