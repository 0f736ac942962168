"""Pod security: the levels that a namespace's labels ask for, enforced on pods and warned of on templates.

`pod-security.kubernetes.io/enforce` refuses, `/warn` warns; `/audit` has no audit log to go to.
"""

from __future__ import annotations

import re

from muster.api.errors import INVALID, FieldError, forbidden, invalid
from muster.server.admission.pod_security_checks import violations
from muster.server.resources.kind import Obj, Write

_PREFIX = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "restricted")
_MODES = ("enforce", "warn", "audit")
_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")


async def admit_pod_security(write: Write, new: Obj, old: Obj | None) -> None:
    """For pods."""
    if write.operation == "DELETE" or write.subresource or (old is not None and _same(new, old)):
        return
    labels = _labels(write)
    if not labels:
        return
    metadata, spec = new.get("metadata") or {}, new.get("spec") or {}
    if found := _violated(labels, "enforce", metadata, spec):
        raise forbidden("", "pods", write.name, f"violates {found}")
    _warn(write, labels, metadata, spec)


async def admit_template_security(write: Write, new: Obj, old: Obj | None) -> None:
    """For the kinds that make pods from a template."""
    if write.operation == "DELETE" or write.subresource:
        return
    labels = _labels(write)
    if not labels:
        return
    spec: Obj = new.get("spec") or {}
    if "jobTemplate" in spec:
        spec = spec["jobTemplate"].get("spec") or {}
    template: Obj = spec.get("template") or new.get("template") or {}
    _warn(write, labels, template.get("metadata") or {}, template.get("spec") or {})


async def admit_namespace_levels(write: Write, new: Obj, old: Obj | None) -> None:
    """For namespaces: labels that name no level or version are refused."""
    if write.operation == "DELETE" or write.subresource:
        return
    labels: Obj = (new.get("metadata") or {}).get("labels") or {}
    wrong: list[FieldError] = []
    for mode in _MODES:
        level, version = labels.get(_PREFIX + mode), labels.get(f"{_PREFIX}{mode}-version")
        if level is not None and level not in _LEVELS:
            text = f"must be one of {', '.join(_LEVELS)}"
            wrong.append(FieldError(INVALID, f"metadata.labels[{_PREFIX}{mode}]", level, text))
        if version is not None and not _VERSION.fullmatch(version):
            text = 'must be "latest" or "v1.x"'
            wrong.append(FieldError(INVALID, f"metadata.labels[{_PREFIX}{mode}-version]", version, text))
    if wrong:
        raise invalid("", "Namespace", write.name, wrong)


def _labels(write: Write) -> dict[str, str]:
    """The labels of the namespace that are about pod security."""
    namespace = write.reader.get("namespaces", "", "", write.namespace) or {}
    labels: dict[str, str] = (namespace.get("metadata") or {}).get("labels") or {}
    return {key: value for key, value in labels.items() if key.startswith(_PREFIX)}


def _violated(labels: dict[str, str], mode: str, metadata: Obj, spec: Obj) -> str:
    """The level of a mode and what is against it; empty where nothing is."""
    level = labels.get(_PREFIX + mode, "privileged")
    found = violations(level if level in _LEVELS else "restricted", metadata, spec)
    version = labels.get(f"{_PREFIX}{mode}-version", "latest")
    return f'PodSecurity "{level}:{version}": {", ".join(found)}' if found else ""


def _warn(write: Write, labels: dict[str, str], metadata: Obj, spec: Obj) -> None:
    if found := _violated(labels, "warn", metadata, spec):
        write.warnings.append(f"would violate {found}")


def _same(new: Obj, old: Obj) -> bool:
    """Whether nothing changed that the levels are about: containers' images and the like may."""
    return [_essence(each) for each in _all(new)] == [_essence(each) for each in _all(old)]


def _all(pod: Obj) -> list[Obj]:
    spec: Obj = pod.get("spec") or {}
    keys = ("initContainers", "containers", "ephemeralContainers")
    return [each for key in keys for each in spec.get(key) or ()]


def _essence(container: Obj) -> Obj:
    return {key: value for key, value in container.items() if key not in ("image", "resources")}
