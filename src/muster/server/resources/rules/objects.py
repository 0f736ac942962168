"""Budgets, services, configuration, storage and leases: kinds with a handful of rules each."""

from __future__ import annotations

import base64
from typing import Any

from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules.apps import int_or_percent
from muster.server.resources.rules.fields import forbidden, invalid, one_of, required, too_long, unchanged
from muster.server.resources.rules.formats import config_key
from muster.server.resources.rules.placement import validate_label_selector, validate_node_selector
from muster.server.resources.rules.pod_resources import validate_quantities
from muster.server.resources.rules.pod_spec import port_number

MAX_CONFIG = 1024 * 1024
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_SERVICE_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")


# --- disruption budgets ----------------------------------------------------------------------------


def validate_budget(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    found: list[FieldError] = []
    if least is not None and most is not None:
        found.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for key, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is None:
            continue
        wrong = int_or_percent(f"spec.{key}", value)
        if not wrong and isinstance(value, str) and int(value[:-1]) > 100:
            wrong = [invalid(f"spec.{key}", value, "must not be greater than 100%")]
        found += wrong
    found += validate_label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        found += one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))
    return found


# --- services --------------------------------------------------------------------------------------


def default_service(service: Obj) -> None:
    spec = service.get("spec")
    if spec is None:
        spec = service["spec"] = {}
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port.get("port")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")


def validate_service(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    found = one_of("spec.type", spec.get("type"), _SERVICE_TYPES)
    if spec.get("type") == "ExternalName":
        if not spec.get("externalName"):
            found.append(required("spec.externalName"))
    elif not spec.get("ports") and spec.get("clusterIP") != "None":
        found.append(required("spec.ports"))
    names: set[str] = set()
    for position, port in enumerate(spec.get("ports") or ()):
        path = f"spec.ports[{position}]"
        found += port_number(f"{path}.port", port.get("port"))
        found += one_of(f"{path}.protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))
        name = port.get("name") or ""
        if not name and len(spec["ports"]) > 1:
            found.append(required(f"{path}.name"))
        elif name in names:
            found.append(FieldError("FieldValueDuplicate", f"{path}.name", name))
        names.add(name)
    found += one_of("spec.sessionAffinity", spec.get("sessionAffinity"), ("None", "ClientIP"))
    before: Obj = (old or {}).get("spec") or {}
    if before.get("clusterIP") and before.get("type") != "ExternalName" and spec.get("type") != "ExternalName":
        found += unchanged("spec.clusterIPs[0]", spec.get("clusterIP"), before["clusterIP"])
    return found


# --- config maps and secrets -----------------------------------------------------------------------


def validate_config_map(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    found = _keys(new, ("data", "binaryData"))
    both = set(new.get("data") or {}) & set(new.get("binaryData") or {})
    found += [invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in sorted(both)]
    return found + _immutable(new, old, ("data", "binaryData"))


def default_secret(secret: Obj) -> None:
    secret.setdefault("type", "Opaque")
    plain: Any = secret.pop("stringData", None)
    if plain:
        data = secret["data"] = dict(secret.get("data") or {})
        for key, value in plain.items():
            data[key] = base64.b64encode(str(value).encode()).decode()


def validate_secret(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    found = _keys(new, ("data",))
    if old is not None:
        found += unchanged("type", new.get("type"), old.get("type"))
    return found + _immutable(new, old, ("data",))


def _keys(obj: Obj, fields: tuple[str, ...]) -> list[FieldError]:
    found: list[FieldError] = []
    size = 0
    for field in fields:
        for key, value in (obj.get(field) or {}).items():
            found += [invalid(f"{field}[{key}]", key, text) for text in config_key(key)]
            size += len(str(value))
    if size > MAX_CONFIG:
        found.append(too_long("", MAX_CONFIG))
    return found


def _immutable(new: Obj, old: Obj | None, fields: tuple[str, ...]) -> list[FieldError]:
    if old is None or not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    found = [] if new.get("immutable") else [forbidden("immutable", text)]
    return found + [forbidden(key, text) for key in fields if (new.get(key) or {}) != (old.get(key) or {})]


# --- storage ---------------------------------------------------------------------------------------


def default_volume(volume: Obj) -> None:
    spec = volume.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")


def validate_volume(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    found = _access_modes(spec)
    if not spec.get("capacity"):
        found.append(required("spec.capacity"))
    found += validate_quantities(spec.get("capacity"), "spec.capacity")
    needed = (spec.get("nodeAffinity") or {}).get("required")
    if needed is not None:
        found += validate_node_selector(needed, "spec.nodeAffinity.required")
    return found


def default_claim(claim: Obj) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def validate_claim(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    if old is None:
        found = _access_modes(spec)
        if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
            found.append(required("spec.resources[storage]"))
        return found
    before: Obj = old.get("spec") or {}
    settled = {key: value for key, value in spec.items() if key not in ("resources", "volumeAttributesClassName")}
    earlier = {key: value for key, value in before.items() if key not in ("resources", "volumeAttributesClassName")}
    if not before.get("volumeName"):
        earlier["volumeName"] = settled.get("volumeName")
        settled.setdefault("volumeName", None)
    if settled != earlier:
        return [
            forbidden(
                "spec",
                "spec is immutable after creation except resources.requests and "
                "volumeAttributesClassName for bound claims",
            )
        ]
    return []


def _access_modes(spec: Obj) -> list[FieldError]:
    modes = spec.get("accessModes")
    if not modes:
        return [required("spec.accessModes", "at least 1 access mode is required")]
    found: list[FieldError] = []
    for mode in modes:
        found += one_of("spec.accessModes", mode, _ACCESS_MODES)
    return found


def default_storage_class(obj: Obj) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def validate_storage_class(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    found = [] if new.get("provisioner") else [required("provisioner")]
    found += one_of("reclaimPolicy", new.get("reclaimPolicy"), ("Delete", "Retain"))
    found += one_of("volumeBindingMode", new.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer"))
    if old is not None:
        for key in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            if (new.get(key) or None) != (old.get(key) or None):
                found.append(forbidden(key, f"updates to {key} are forbidden."))
    return found


# --- leases ----------------------------------------------------------------------------------------


def validate_lease(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    found: list[FieldError] = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        found.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        found.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return found
