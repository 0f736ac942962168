"""The rules of a pod's spec that people run into: containers, ports, volumes, enums, gates, group membership.

Works on defaulted specs. Resources are checked in `pod_resources`, placement wishes in `placement`.
"""

from __future__ import annotations

from typing import Any

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.api.validation.pod import validate_scheduling_group
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import duplicate, forbidden, invalid, not_supported, one_of, required
from muster.server.resources.rules.formats import port_name
from muster.server.resources.rules.labels import validate_labels
from muster.server.resources.rules.placement import validate_affinity, validate_spread, validate_tolerations
from muster.server.resources.rules.pod_resources import validate_quantities, validate_resources

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
_SHORTEST_CERTIFICATE, _LONGEST_CERTIFICATE, _LONGEST_KUBERNETES_CERTIFICATE = 3_600, 91 * 86_400, 86_400  # seconds


def validate_pod_spec(spec: Obj, path: str) -> list[FieldError]:
    """All that is wrong with a pod spec."""
    volumes: set[str] = set()
    found = _volumes(spec.get("volumes"), f"{path}.volumes", volumes)
    found += _containers(spec, path, volumes)
    found += one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    found += one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    found += _numbers(spec, path)
    found += _names(spec, path)
    found += validate_labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    found += validate_affinity(spec.get("affinity"), f"{path}.affinity")
    found += validate_tolerations(spec.get("tolerations"), f"{path}.tolerations")
    found += validate_spread(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    found += _gates(spec, path)
    found += validate_scheduling_group(spec, path)
    found += validate_quantities(spec.get("overhead"), f"{path}.overhead")
    if spec.get("resources"):
        found += validate_resources(spec["resources"], f"{path}.resources")
    return found


def _containers(spec: Obj, path: str, volumes: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    if not spec.get("containers"):
        found.append(required(f"{path}.containers"))
    names: set[str] = set()
    host_ports: set[tuple[str, str, int]] = set()
    for key in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(key) or ()):
            here = f"{path}.{key}[{position}]"
            found += _container(container, here, names, volumes)
            found += _ports(container.get("ports"), f"{here}.ports", host_ports if key == "containers" else set())
    for position, container in enumerate(spec.get("initContainers") or ()):
        policy = container.get("restartPolicy")
        if policy is not None:
            found += one_of(f"{path}.initContainers[{position}].restartPolicy", policy, ("Always",))
    if spec.get("ephemeralContainers"):
        found.append(forbidden(f"{path}.ephemeralContainers", "cannot be set on create"))
    return found


def _container(container: Obj, path: str, names: set[str], volumes: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    name = container.get("name")
    if not name:
        found.append(required(f"{path}.name"))
    else:
        found += [invalid(f"{path}.name", name, text) for text in formats.dns_label(name)]
        if name in names:
            found.append(duplicate(f"{path}.name", name))
        names.add(name)
    image = container.get("image")
    if not image:
        found.append(required(f"{path}.image"))
    elif image != image.strip():
        found.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    found += one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    found += one_of(f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), _MESSAGE_POLICIES)
    found += validate_resources(container.get("resources"), f"{path}.resources")
    found += _environment(container.get("env"), f"{path}.env")
    found += _mounts(container.get("volumeMounts"), f"{path}.volumeMounts", volumes)
    return found


def _environment(variables: Any, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, variable in enumerate(variables or ()):
        name = variable.get("name")
        if not name:
            found.append(required(f"{path}[{position}].name"))
        elif "=" in name:
            found.append(
                invalid(f"{path}[{position}].name", name, "a valid environment variable name must not contain '='")
            )
        if variable.get("value") and variable.get("valueFrom"):
            found.append(invalid(f"{path}[{position}].valueFrom", "", "may not be specified when `value` is not empty"))
    return found


def _mounts(mounts: Any, path: str, volumes: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    places: set[str] = set()
    for position, mount in enumerate(mounts or ()):
        name, place = mount.get("name"), mount.get("mountPath")
        if not name:
            found.append(required(f"{path}[{position}].name"))
        elif name not in volumes:
            found.append(FieldError("FieldValueNotFound", f"{path}[{position}].name", name))
        if not place:
            found.append(required(f"{path}[{position}].mountPath"))
        elif place in places:
            found.append(invalid(f"{path}[{position}].mountPath", place, "must be unique"))
        places.add(place or "")
    return found


def _ports(ports: Any, path: str, host_ports: set[tuple[str, str, int]]) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for position, port in enumerate(ports or ()):
        here = f"{path}[{position}]"
        if name := port.get("name"):
            found += [invalid(f"{here}.name", name, text) for text in port_name(name)]
            if name in names:
                found.append(duplicate(f"{here}.name", name))
            names.add(name)
        number = port.get("containerPort")
        if not number:
            found.append(required(f"{here}.containerPort"))
        else:
            found += port_number(f"{here}.containerPort", number)
        if port.get("hostPort"):
            found += port_number(f"{here}.hostPort", port["hostPort"])
            taken = (port.get("protocol") or "", port.get("hostIP") or "", port["hostPort"])
            if taken in host_ports:
                found.append(duplicate(f"{here}.hostPort", "/".join(map(str, taken))))
            host_ports.add(taken)
        found += one_of(f"{here}.protocol", port.get("protocol"), _PROTOCOLS)
    return found


def port_number(path: str, number: Any) -> list[FieldError]:
    if isinstance(number, int) and 1 <= number <= 65535:
        return []
    return [invalid(path, number, "must be between 1 and 65535, inclusive")]


def _volumes(volumes: list[Obj] | None, path: str, names: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    for position, volume in enumerate(volumes or ()):
        here = f"{path}[{position}]"
        name = volume.get("name")
        if not name:
            found.append(required(f"{here}.name"))
            continue
        found += [invalid(f"{here}.name", name, text) for text in formats.dns_label(name)]
        if name in names:
            found.append(duplicate(f"{here}.name", name))
        names.add(name)
        sources = sorted(key for key, value in volume.items() if key != "name" and value is not None)
        if not sources:
            found.append(required(here, "must specify a volume type"))
        found += [forbidden(f"{here}.{extra}", "may not specify more than 1 volume type") for extra in sources[1:]]
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            found.append(required(f"{here}.persistentVolumeClaim.claimName"))
        for at, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("podCertificate") is not None:
                found += _pod_certificate(source["podCertificate"], f"{here}.projected.sources[{at}].podCertificate")
    return found


def _is_kubernetes(signer: str) -> bool:
    host = signer.partition("/")[0]
    return host == "kubernetes.io" or host.endswith(".kubernetes.io")


def _pod_certificate(certificate: Obj, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    signer: str = certificate.get("signerName") or ""
    if not signer:
        found.append(required(f"{path}.signerName"))
    if (key := certificate.get("keyType") or "") not in _KEY_TYPES:
        found.append(not_supported(f"{path}.keyType", key, _KEY_TYPES))
    seconds = certificate.get("maxExpirationSeconds")
    most = _LONGEST_KUBERNETES_CERTIFICATE if _is_kubernetes(signer) else _LONGEST_CERTIFICATE
    if seconds is not None and seconds < _SHORTEST_CERTIFICATE:
        why = f"if provided, maxExpirationSeconds must be >= {_SHORTEST_CERTIFICATE}"
        found.append(invalid(f"{path}.maxExpirationSeconds", seconds, why))
    if seconds is not None and seconds > most:
        why = f"if provided, maxExpirationSeconds must be <= {most}"
        found.append(invalid(f"{path}.maxExpirationSeconds", seconds, why))
    if not any(certificate.get(name) for name in _CERTIFICATE_PATHS):
        found.append(required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
    return found


def _numbers(spec: Obj, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and grace != -1:
        found.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        found.append(invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive"))
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        found += one_of(f"{path}.preemptionPolicy", policy, _PREEMPTION_POLICIES)
    return found


def _names(spec: Obj, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for key, check in (
        ("serviceAccountName", formats.dns_subdomain),
        ("nodeName", formats.dns_subdomain),
        ("priorityClassName", formats.dns_subdomain),
        ("hostname", formats.dns_label),
        ("subdomain", formats.dns_label),
        ("schedulerName", formats.qualified_name),
    ):
        if value := spec.get(key):
            found += [invalid(f"{path}.{key}", value, text) for text in check(value)]
    return found


def _gates(spec: Obj, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, gate in enumerate(spec.get("schedulingGates") or ()):
        here = f"{path}.schedulingGates[{position}]"
        name = gate.get("name") or ""
        found += [invalid(here, name, text) for text in formats.qualified_name(name)]
        if name in seen:
            found.append(duplicate(here, name))
        seen.add(name)
    if seen and spec.get("nodeName"):
        found.append(forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return found
