"""Which APIs the server serves: asked once at the start.

Groups are read from the native API where it is served (v1beta1 with composites from v1alpha3, or v1alpha2
of Kubernetes 1.36), else from Muster's own CRDs, else there are none and every pod is scheduled on its own. A kind
that is not served is left out with a note, except the three without which nothing can be scheduled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.api import gates as feature
from muster.api import resources as r
from muster.api.errors import ApiError
from muster.api.gates import FeatureGates
from muster.api.groups import GROUP, HUB
from muster.api.resources import Resource
from muster.client.protocol import Client, Obj

CRD_GROUP = "scheduling.muster.dev"
OLD = "v1alpha2"

NATIVE, NATIVE_OLD, CRDS, NONE = "native", "native v1alpha2", "crds", "none"

_NEEDED = (r.PODS, r.NODES, r.NAMESPACES)
_USEFUL = (
    r.SERVICES,
    r.REPLICATION_CONTROLLERS,
    r.REPLICA_SETS,
    r.STATEFUL_SETS,
    r.PERSISTENT_VOLUMES,
    r.PERSISTENT_VOLUME_CLAIMS,
    r.STORAGE_CLASSES,
    r.CSI_NODES,
    r.RESOURCE_SLICES,
    r.RESOURCE_CLAIMS,
    r.DEVICE_CLASSES,
    r.DEVICE_TAINT_RULES,
    r.POD_DISRUPTION_BUDGETS,
    r.PRIORITY_CLASSES,
)


class UnsupportedServer(Exception):
    """The server does not serve a resource without which nothing can be scheduled."""


@dataclass(frozen=True, slots=True)
class ServedApis:
    """The resources to watch by kind, how groups are read, and what to tell the operator.

    `group_kinds` are those that the server serves, also where a gate keeps the scheduler from reading them: whoever
    protects groups from deletion goes on doing it.
    """

    groups: str
    resources: dict[str, Resource]
    events: bool = True
    notes: list[str] = field(default_factory=list[str])
    group_kinds: tuple[Resource, ...] = ()
    makes_groups: bool = False  # groups are made here for the workloads that have none, so pods may wait for them

    def resource(self, kind: str) -> Resource:
        return self.resources[kind]

    def api_version(self, kind: str) -> str:
        known = self.resources.get(kind)
        return known.api_version if known is not None else "v1"

    def describe_groups(self) -> str:
        """The served group API in words."""
        kinds = [self.resources[kind] for kind in ("PodGroup", "CompositePodGroup") if kind in self.resources]
        listed = ", ".join(f"{each.kind} {each.api_version}" for each in kinds)
        return f"{self.groups} ({listed})" if listed else self.groups


async def discover(client: Client, gates: FeatureGates = feature.DEFAULT) -> ServedApis:
    """Ask the server what it serves. ConnectionError and refusals are the caller's to retry."""
    wanted = sorted(
        {(each.group, each.version) for each in (*_NEEDED, *_USEFUL, r.EVENTS)}
        | {(GROUP, version) for version in ("v1beta1", HUB, OLD)}
        | {(CRD_GROUP, HUB)}
    )
    found = await asyncio.gather(*(_plurals(client, group, version) for group, version in wanted))
    has = {(*place, plural) for place, plurals in zip(wanted, found, strict=True) for plural in plurals}

    def serves(resource: Resource) -> bool:
        return (resource.group, resource.version, resource.plural) in has

    missing = [each.plural for each in _NEEDED if not serves(each)]
    if missing:
        raise UnsupportedServer(
            f"the server does not serve {', '.join(missing)} in v1: it is no Kubernetes API server we can use"
        )
    resources = {each.kind: each for each in _NEEDED}
    notes: list[str] = []
    for each in _USEFUL:
        if serves(each):
            resources[each.kind] = each
        else:
            notes.append(f"{each.plural} in {each.api_version} is not served: what depends on it is not considered")
    groups, group_kinds = _groups(serves)
    groups, read = _read(groups, group_kinds, gates, notes)
    resources.update({each.kind: each for each in read})
    if not serves(r.EVENTS):
        notes.append("events.k8s.io/v1 is not served: no events are recorded")
    return ServedApis(groups, resources, serves(r.EVENTS), notes, group_kinds)


def _groups(serves: Callable[[Resource], bool]) -> tuple[str, tuple[Resource, ...]]:
    """How groups are served, best first, and the resources that carry them."""
    choices = (
        (NATIVE, _in(GROUP, "v1beta1", "v1beta1")),
        (NATIVE, _in(GROUP, HUB, HUB)),
        (NATIVE_OLD, _in(GROUP, OLD, OLD)),
        (CRDS, _in(CRD_GROUP, HUB, HUB)),
    )
    for groups, kinds in choices:
        if serves(kinds[0]):
            return groups, tuple(each for each in kinds if serves(each))
    return NONE, ()


def _read(
    groups: str, kinds: tuple[Resource, ...], gates: FeatureGates, notes: list[str]
) -> tuple[str, tuple[Resource, ...]]:
    """What the gates let the scheduler read of the groups that are served."""
    if not gates.enabled(feature.GANG_SCHEDULING):
        notes.append("gang scheduling is switched off: members of groups are scheduled one by one")
        return NONE, ()
    if groups == NONE:
        notes.append(
            "no PodGroup API is served: every pod is scheduled on its own. Enable GenericWorkload with "
            f"--runtime-config={GROUP}/v1beta1=true on the API server, or install Muster's CRDs (muster install --crds)"
        )
        return NONE, ()
    if not gates.enabled(feature.COMPOSITE):
        notes.append("CompositePodGroup is switched off: parents are ignored, each PodGroup is scheduled on its own")
        return groups, tuple(each for each in kinds if each.kind != r.COMPOSITE_POD_GROUPS.kind)
    if r.COMPOSITE_POD_GROUPS.kind not in {each.kind for each in kinds}:
        notes.append("CompositePodGroup is not served: hierarchies of groups cannot be scheduled")
    return groups, kinds


def _in(group: str, pod_groups: str, workloads: str) -> list[Resource]:
    """The three kinds in one group. Composites exist in the hub version only."""
    return [
        Resource(group, pod_groups, "podgroups", "PodGroup", True),
        Resource(group, workloads, "workloads", "Workload", True),
        Resource(group, HUB, "compositepodgroups", "CompositePodGroup", True),
    ]


async def _plurals(client: Client, group: str, version: str) -> set[str]:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        answer = await client.request("GET", path)
    except ApiError as error:
        if error.code == 404:
            return set()
        raise
    found: list[Obj] = answer.get("resources") or []
    return {str(each.get("name")) for each in found}
