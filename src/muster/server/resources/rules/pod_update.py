"""What may change in the spec of a pod that exists: very little, as in Kubernetes.

Images, the active deadline, more tolerations, a negative grace period to 1; and while scheduling
gates hold the pod back also removing gates and narrowing where it may run.
"""

from __future__ import annotations

from typing import Any

from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import forbidden, invalid, required
from muster.server.resources.rules.placement import REQUIRED_TERMS, validate_affinity, validate_tolerations

_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_ADDITIONS_ONLY = "only additions are allowed (no mutations or deletions)"


def validate_pod_update(new: Obj, old: Obj) -> list[FieldError]:
    """All changes that are not allowed."""
    found = _images(new) + _deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    found += _tolerations(new.get("tolerations") or [], old.get("tolerations") or [])
    found += _gates(new, old)
    allowed = _with_allowed_changes(new, old)
    if old.get("schedulingGates"):
        found += _narrowing(new, old)
        for key in ("nodeSelector", "affinity"):
            _copy(allowed, new, key)
    if found:
        return found
    changed = sorted(key for key in {*new, *allowed} if (new.get(key) or None) != (allowed.get(key) or None))
    if changed:
        listed = ", ".join(f"spec.{key}" for key in changed)
        return [forbidden("spec", f"{_MAY_CHANGE}\nchanged: {listed}")]
    return []


def _with_allowed_changes(new: Obj, old: Obj) -> Obj:
    """The old spec with every allowed change of the new one: equal to the new one if nothing else changed."""
    allowed = dict(old)
    for key in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _copy(allowed, new, key)
    for key in ("containers", "initContainers"):
        before, after = old.get(key) or [], new.get(key) or []
        if len(before) == len(after):
            allowed[key] = [
                {**earlier, "image": later.get("image")} for earlier, later in zip(before, after, strict=True)
            ]
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        allowed["terminationGracePeriodSeconds"] = 1
    return allowed


def _copy(target: Obj, source: Obj, key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _images(new: Obj) -> list[FieldError]:
    return [
        required(f"spec.{key}[{position}].image")
        for key in ("containers", "initContainers")
        for position, container in enumerate(new.get(key) or ())
        if not container.get("image")
    ]


def _deadline(new: Any, old: Any) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    if new == old:
        return []
    if new is None:
        return [invalid(path, new, "must not update from a positive integer to nil value")]
    if not 1 <= new <= 2**31 - 1:
        return [invalid(path, new, "must be between 1 and 2147483647, inclusive")]
    if old is not None and new > old:
        return [invalid(path, new, "must be less than or equal to previous value")]
    return []


def _tolerations(new: list[Obj], old: list[Obj]) -> list[FieldError]:
    if new == old:
        return []
    kept = [_without_seconds(each) for each in new]
    for each in old:
        if _without_seconds(each) not in kept:
            return [
                forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
            ]
    return validate_tolerations(new, "spec.tolerations")


def _without_seconds(toleration: Obj) -> Obj:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gates(new: Obj, old: Obj) -> list[FieldError]:
    before = {each.get("name") for each in old.get("schedulingGates") or ()}
    return [
        forbidden(
            "spec.schedulingGates", f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
        )
        for gate in new.get("schedulingGates") or ()
        if gate.get("name") not in before
    ]


def _narrowing(new: Obj, old: Obj) -> list[FieldError]:
    """A gated pod may be sent to fewer nodes, never to more."""
    found: list[FieldError] = []
    selector = new.get("nodeSelector") or {}
    for key, value in (old.get("nodeSelector") or {}).items():
        if selector.get(key) != value:
            found.append(invalid("spec.nodeSelector", selector, _ADDITIONS_ONLY))
            break
    if (new.get("affinity") or {}) != (old.get("affinity") or {}):
        found += validate_affinity(new.get("affinity"), "spec.affinity")
        found += _affinity_narrowed(new.get("affinity") or {}, old.get("affinity") or {})
    return found


def _affinity_narrowed(new: Obj, old: Obj) -> list[FieldError]:
    for kind in ("podAffinity", "podAntiAffinity"):
        if (new.get(kind) or {}) != (old.get(kind) or {}):
            return [forbidden("spec", f"{_MAY_CHANGE}\nchanged: spec.affinity.{kind}")]
    path = f"spec.affinity.nodeAffinity.{REQUIRED_TERMS}"
    before = ((old.get("nodeAffinity") or {}).get(REQUIRED_TERMS) or {}).get("nodeSelectorTerms") or []
    if not before:
        return []
    after = ((new.get("nodeAffinity") or {}).get(REQUIRED_TERMS) or {}).get("nodeSelectorTerms") or []
    if len(after) != len(before):
        return [
            invalid(
                f"{path}.nodeSelectorTerms",
                after,
                "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
            )
        ]
    return [
        invalid(f"{path}.nodeSelectorTerms[{position}]", later, _ADDITIONS_ONLY)
        for position, (earlier, later) in enumerate(zip(before, after, strict=True))
        if not _contains(later, earlier)
    ]


def _contains(term: Obj, earlier: Obj) -> bool:
    return all(
        each in (term.get(key) or []) for key in ("matchExpressions", "matchFields") for each in earlier.get(key) or ()
    )
