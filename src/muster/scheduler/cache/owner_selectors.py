"""Services and controllers by namespace: whose selectors make pods belong together for default spreading."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.selectors import all_satisfied
from muster.api.types import LabelSelector, Pod, ReplicaSet, ReplicationController, Service, StatefulSet
from muster.scheduler.cache.footprints import spreading_owner
from muster.scheduler.cache.pod_terms import Conditions, PodTerm, conditions_of, normal

KINDS = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")


Selecting = Service | ReplicationController | ReplicaSet | StatefulSet


class OwnerSelectors:
    """The selectors of services and controllers."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, Conditions]] = {}
        self._owners: dict[tuple[str, str, str], Conditions] = {}

    def put(self, kind: str, obj: Selecting) -> frozenset[str] | None:
        """Take one in. The label keys it looks at, or None if nothing is new."""
        found = _conditions(obj)
        namespace, name = obj.metadata.namespace, obj.metadata.name
        if found is None:
            return frozenset() if self.drop(kind, namespace, name) else None
        if kind == "Service":
            held, key = self._services.setdefault(namespace, {}), name
            if held.get(key) == found:
                return None
            held[key] = found
        else:
            if self._owners.get((kind, namespace, name)) == found:
                return None
            self._owners[(kind, namespace, name)] = found
        return frozenset(condition.key for condition in found)

    def drop(self, kind: str, namespace: str, name: str) -> bool:
        """Forget one; False if it was not known."""
        if kind == "Service":
            return self._services.get(namespace, {}).pop(name, None) is not None
        return self._owners.pop((kind, namespace, name), None) is not None

    def companions(self, pod: Pod, labels: Mapping[str, str]) -> PodTerm | None:
        """Selects the pods that belong with this one: all that its services and its controller select, or None."""
        namespace = pod.metadata.namespace
        found: list[Conditions] = [
            conditions
            for conditions in self._services.get(namespace, {}).values()
            if conditions and all_satisfied(conditions, labels)
        ]
        owner = spreading_owner(pod)
        if owner is not None:
            found.append(self._owners.get((owner[0], namespace, owner[1]), ()))
        together = normal(condition for conditions in found for condition in conditions)
        return PodTerm(frozenset((namespace,)), None, together) if together else None


def _conditions(obj: Selecting) -> Conditions | None:
    selector = obj.spec.selector
    if isinstance(selector, dict):
        return conditions_of(LabelSelector(match_labels=selector))
    return conditions_of(selector)
