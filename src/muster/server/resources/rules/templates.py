"""Pod templates and the selectors that must fit them, as all workload kinds share them."""

from __future__ import annotations

import msgspec

from muster.api.errors import FieldError
from muster.api.selectors import matches
from muster.api.types import LabelSelector
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import invalid, not_supported, required
from muster.server.resources.rules.labels import validate_annotations, validate_labels
from muster.server.resources.rules.placement import validate_label_selector
from muster.server.resources.rules.pod_defaults import default_pod_spec
from muster.server.resources.rules.pod_spec import validate_pod_spec


def default_template(spec: Obj) -> None:
    """Fills in `spec.template` of a workload, in place."""
    template = spec.get("template")
    if template is not None and template.get("spec") is not None:
        template.setdefault("metadata", {})
        default_pod_spec(template["spec"])


def validate_template(template: Obj, path: str) -> list[FieldError]:
    metadata: Obj = template.get("metadata") or {}
    found = validate_labels(f"{path}.metadata.labels", metadata.get("labels"))
    found += validate_annotations(f"{path}.metadata.annotations", metadata.get("annotations"))
    return found + validate_pod_spec(template.get("spec") or {}, f"{path}.spec")


def validate_selector(spec: Obj) -> list[FieldError]:
    """A selector is given, is not empty, is well-formed and selects the pods of its own template."""
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    found = validate_label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        found.append(invalid("spec.selector", selector, "empty selector is invalid for deployment"))
    given: dict[str, str] = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not found and not selects(selector, given):
        found.append(invalid("spec.template.metadata.labels", given, "`selector` does not match template `labels`"))
    return found


def selects(selector: Obj, given: dict[str, str]) -> bool:
    """Whether a JSON label selector selects labels."""
    return matches(msgspec.convert(selector, LabelSelector), given)


def always_restarts(spec: Obj) -> list[FieldError]:
    """Controllers that keep pods running take templates whose pods restart."""
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy == "Always":
        return []
    return [not_supported("spec.template.spec.restartPolicy", policy, ("Always",))]
