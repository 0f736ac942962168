"""Whether a webhook or a policy is about a write: rules, selectors of namespaces and of objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from muster.api.selectors import matches
from muster.api.types import LabelSelector
from muster.server.admission.dynamic.attributes import Attributes
from muster.server.resources.kind import Obj

GROUP = "admissionregistration.k8s.io"
_ALL = "*"


class Rule(msgspec.Struct, rename="camel"):
    """Operations on resources; `resource_names` only in policies."""

    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str = _ALL
    resource_names: tuple[str, ...] = ()

    def covers(self, attributes: Attributes, version: str) -> bool:
        write, kind = attributes.write, attributes.kind
        return (
            _among(write.operation, self.operations)
            and _among(kind.group, self.api_groups)
            and _among(version, self.api_versions)
            and any(_is_about(pattern, kind.plural, write.subresource) for pattern in self.resources)
            and self.scope in (_ALL, "Namespaced" if kind.namespaced else "Cluster")
            and (not self.resource_names or write.name in self.resource_names)
        )


def _among(value: str, listed: Sequence[str]) -> bool:
    return _ALL in listed or value in listed


def _is_about(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, part = pattern.partition("/")
    return resource in (_ALL, plural) and part in (_ALL, subresource)


class Matcher:
    """What a webhook or policy is about."""

    def __init__(self, spec: Mapping[str, Any], rules: Sequence[Any], excluded: Sequence[Any] = ()) -> None:
        self._rules = msgspec.convert(list(rules), list[Rule])
        self._excluded = msgspec.convert(list(excluded), list[Rule])
        self._equivalent = spec.get("matchPolicy", "Equivalent") != "Exact"
        self._namespaces = _selector(spec.get("namespaceSelector"))
        self._objects = _selector(spec.get("objectSelector"))

    def version(self, attributes: Attributes) -> str:
        """The version in which the write is to be shown; empty where it is not matched."""
        if self._matched(self._excluded, attributes):
            return ""
        version = self._matched(self._rules, attributes)
        if version and self._selects_namespace(attributes) and self._selects_object(attributes):
            return version
        return ""

    def _matched(self, rules: Sequence[Rule], attributes: Attributes) -> str:
        asked = attributes.version
        others = attributes.kind.versions if self._equivalent else ()
        for version in (asked, *(each for each in others if each != asked)):
            if any(rule.covers(attributes, version) for rule in rules):
                return version
        return ""

    def _selects_namespace(self, attributes: Attributes) -> bool:
        if self._namespaces is None:
            return True
        if not attributes.kind.namespaced and not attributes.is_namespace:
            return True
        return matches(self._namespaces, labels_of(attributes.namespace_object()))

    def _selects_object(self, attributes: Attributes) -> bool:
        if self._objects is None:
            return True
        present = [each for each in (attributes.new, attributes.old) if each is not None]
        return any(matches(self._objects, labels_of(each)) for each in present)


def _selector(given: Obj | None) -> LabelSelector | None:
    """None where everything is selected."""
    return msgspec.convert(given, LabelSelector) if given else None


def labels_of(obj: Obj | None) -> dict[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}
