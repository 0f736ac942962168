"""Selectors of Services, ReplicationControllers, ReplicaSets and StatefulSets, for default topology spreading."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.selectors import all_satisfied
from muster.api.types import LabelSelector, Pod, ReplicaSet, ReplicationController, Service, StatefulSet
from muster.scheduler.cache.footprints import spreading_owner
from muster.scheduler.cache.pod_terms import PodTerm, Requirements, normalized, requirements_of

SelectingObject = Service | ReplicationController | ReplicaSet | StatefulSet


class OwnerSelectors:
    """The selectors of Services and of controllers, by namespace and name."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, Requirements]] = {}
        self._owners: dict[tuple[str, str, str], Requirements] = {}

    def set(self, kind: str, obj: SelectingObject) -> frozenset[str] | None:
        """Add or update an object. Returns the label keys of its selector, or None if nothing changed."""
        found = _requirements(obj)
        namespace, name = obj.metadata.namespace, obj.metadata.name
        if found is None:
            return frozenset() if self.remove(kind, namespace, name) else None
        if kind == "Service":
            services = self._services.setdefault(namespace, {})
            if services.get(name) == found:
                return None
            services[name] = found
        else:
            if self._owners.get((kind, namespace, name)) == found:
                return None
            self._owners[(kind, namespace, name)] = found
        return frozenset(required.key for required in found)

    def remove(self, kind: str, namespace: str, name: str) -> bool:
        """Remove an object; False if it was not known."""
        if kind == "Service":
            return self._services.get(namespace, {}).pop(name, None) is not None
        return self._owners.pop((kind, namespace, name), None) is not None

    def default_selector(self, pod: Pod, labels: Mapping[str, str]) -> PodTerm | None:
        """The term that selects what all Services and the controller of the pod select; None if there are none.

        kube-scheduler calls this `DefaultSelector`.
        """
        namespace = pod.metadata.namespace
        found: list[Requirements] = [
            selector
            for selector in self._services.get(namespace, {}).values()
            if selector and all_satisfied(selector, labels)
        ]
        owner = spreading_owner(pod)
        if owner is not None:
            found.append(self._owners.get((owner[0], namespace, owner[1]), ()))
        combined = normalized(required for selector in found for required in selector)
        return PodTerm(frozenset((namespace,)), None, combined) if combined else None


def _requirements(obj: SelectingObject) -> Requirements | None:
    selector = obj.spec.selector
    if isinstance(selector, dict):
        return requirements_of(LabelSelector(match_labels=selector))
    return requirements_of(selector)
