"""On which nodes a DaemonSet runs a pod, and how that pod is tied to its node.

Pure. Room on the node does not matter here: a daemon pod is made for every node that it may run on, and the scheduler
places it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from muster.api.selectors import first_untolerated, node_matches, tolerates
from muster.api.types import NodeSelector, Taint, Toleration
from muster.controllers.objects import PodView, UnstructuredObject
from muster.controllers.status import JSON

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")  # only for pods in the node's own network


class Eligibility(NamedTuple):
    """Whether a node should get a daemon pod, and whether one that is there may stay."""

    run: bool
    stay: bool


def daemon_spec(spec: JSON) -> JSON:
    """A pod spec of the template, with the tolerations that every daemon pod has."""
    wanted = [*_TOLERATED, _NETWORK] if spec.get("hostNetwork") else _TOLERATED
    present: list[JSON] = spec.get("tolerations") or []
    own = msgspec.convert(present, tuple[Toleration, ...])
    added = [
        {"key": key, "operator": "Exists", "effect": effect}
        for key, effect in wanted
        if not any((each.key, each.effect, each.operator) == (key, effect, "Exists") for each in own)
    ]
    return {**spec, "tolerations": [*present, *added]}


class NodeJudge:
    """Judges nodes for one pod spec (as `daemon_spec` gives it), which is read once for all of them."""

    def __init__(self, spec: JSON) -> None:
        self._node: str = spec.get("nodeName") or ""
        self._labels: dict[str, str] = spec.get("nodeSelector") or {}
        required: Any = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
        self._required = None if required is None else msgspec.convert(required, NodeSelector)
        self._tolerations = msgspec.convert(spec.get("tolerations") or [], tuple[Toleration, ...])

    def judge(self, node: UnstructuredObject) -> Eligibility:
        name, labels = node.metadata.name, node.metadata.labels or {}
        if self._node not in ("", name) or any(labels.get(key) != value for key, value in self._labels.items()):
            return Eligibility(False, False)
        if self._required is not None and not node_matches(self._required, name, labels):
            return Eligibility(False, False)
        given: Any = node.spec.get("taints")
        if not given:
            return Eligibility(True, True)
        taints = msgspec.convert(given, tuple[Taint, ...])
        if first_untolerated(taints, self._tolerations) is None:
            return Eligibility(True, True)
        evicting = [each for each in taints if each.effect == "NoExecute"]
        stay = all(any(tolerates(toleration, taint) for toleration in self._tolerations) for taint in evicting)
        return Eligibility(False, stay)


def pinned(spec: JSON, node: str) -> JSON:
    """A pod spec whose node affinity allows one node only; its other terms give way, as that node meets them."""
    affinity: JSON = dict(spec.get("affinity") or {})
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    own: JSON = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": own}}


def node_of(pod: PodView) -> str:
    """The node of a daemon pod: where it runs, or where its affinity sends it."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = ((pod.spec.affinity or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("operator") == "In" and field.get("values"):
                return str(field["values"][0])
    return ""
