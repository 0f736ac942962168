"""DeviceClasses and DeviceTaintRules."""

from __future__ import annotations

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.server.resources.kind import Obj
from muster.server.resources.rules.devices.device_fields import (
    MOST_CONFIGURATIONS,
    complaints,
    configuration,
    driver,
    limited,
    name,
    pool_name,
    selectors,
    taint,
)
from muster.server.resources.rules.fields import invalid

_NO_DOMAIN = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"


def validate_class(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    before: Obj = (old or {}).get("spec") or {}
    given: list[Obj] = spec.get("selectors") or []
    found = selectors("spec.selectors", given, stored=old is not None and given == (before.get("selectors") or []))
    config: list[Obj] = spec.get("config") or []
    too_many = limited("spec.config", config, MOST_CONFIGURATIONS)
    found += too_many
    for position, each in enumerate(config if not too_many else ()):
        found += configuration(f"spec.config[{position}]", each)
    resource: str | None = spec.get("extendedResourceName")
    if resource is not None and resource != before.get("extendedResourceName"):
        found += _extended_resource("spec.extendedResourceName", resource)
    return found


def _extended_resource(path: str, resource: str) -> list[FieldError]:
    """A name with a domain that is not Kubernetes' own."""
    domain, slash, _ = resource.partition("/")
    if not slash:
        return [invalid(path, resource, _NO_DOMAIN)]
    if "kubernetes.io" in domain or resource.startswith("requests."):
        return [invalid(path, resource, "must be a valid extended resource name")]
    return complaints(path, resource, formats.qualified_name(resource))


def validate_taint_rule(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource == "status":
        return []
    spec: Obj = new.get("spec") or {}
    selector: Obj = spec.get("deviceSelector") or {}
    before: Obj = ((old or {}).get("spec") or {}).get("deviceSelector") or {}
    found: list[FieldError] = []
    if old is None or selector != before:
        for field, rule in (("driver", driver), ("pool", pool_name), ("device", name)):
            if selector.get(field) is not None:
                found += rule(f"spec.deviceSelector.{field}", selector[field])
    return found + taint("spec.taint", spec.get("taint") or {})
