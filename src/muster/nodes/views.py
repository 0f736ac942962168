"""The fields of nodes and pods that a simulated kubelet reads, and the annotations that control its pods.

muster.dev/start-seconds   how long it takes to start (default: the simulation's)
muster.dev/run-seconds     how long it runs before it ends; without it a pod that always restarts runs for ever
muster.dev/exit-code       what it ends with (default 0); anything else means Failed
muster.dev/stop-seconds    how long its containers take to end once they are asked to (default: the simulation's)
muster.dev/log             what its containers write when they start
"""

from __future__ import annotations

from typing import NamedTuple

from muster.api import quantity
from muster.api.groups import GroupMeta
from muster.api.types import Container, Leaf, Quantities, ResourceRequirements

START_SECONDS = "muster.dev/start-seconds"
RUN_SECONDS = "muster.dev/run-seconds"
EXIT_CODE = "muster.dev/exit-code"
STOP_SECONDS = "muster.dev/stop-seconds"
LOG = "muster.dev/log"
_EVERY = "0.0.0.0"


class KubeletMeta(GroupMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    deletion_grace_period_seconds: int | None = None


class Sleep(Leaf, frozen=True):
    seconds: int = 0


class LifecycleHandler(Leaf, frozen=True):
    sleep: Sleep | None = None


class Lifecycle(Leaf, frozen=True):
    pre_stop: LifecycleHandler | None = None


class KubeletContainer(Container, frozen=True, gc=False, rename="camel", omit_defaults=True):
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    lifecycle: Lifecycle | None = None

    @property
    def sleep_before_stop(self) -> int:
        """Seconds that its `preStop` hook sleeps. Hooks that run something take no time: nothing runs."""
        hook = self.lifecycle.pre_stop if self.lifecycle is not None else None
        return hook.sleep.seconds if hook is not None and hook.sleep is not None else 0


class KubeletPodSpec(Leaf, frozen=True):
    node_name: str = ""
    containers: tuple[KubeletContainer, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None


class KubeletPodStatus(Leaf, frozen=True):
    phase: str = ""
    start_time: str | None = None


class KubeletPod(Leaf, frozen=True):
    metadata: KubeletMeta
    spec: KubeletPodSpec = KubeletPodSpec()
    status: KubeletPodStatus = KubeletPodStatus()

    @property
    def key(self) -> tuple[str, str]:
        return (self.metadata.namespace, self.metadata.name)

    @property
    def ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    def number(self, annotation: str) -> float | None:
        """A number that an annotation gives; None when it gives none that makes sense."""
        text = (self.metadata.annotations or {}).get(annotation)
        try:
            value = float(text) if text is not None else None
        except ValueError:
            return None
        return value if value is not None and 0 <= value < float("inf") else None

    @property
    def exit_code(self) -> int:
        return int(self.number(EXIT_CODE) or 0)


class KubeletCondition(Leaf, frozen=True):
    type: str = ""
    status: str = ""


class KubeletNodeStatus(Leaf, frozen=True):
    allocatable: Quantities | None = None
    conditions: tuple[KubeletCondition, ...] | None = None


class KubeletNode(Leaf, frozen=True):
    metadata: KubeletMeta
    status: KubeletNodeStatus = KubeletNodeStatus()

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions or ())


class HostPort(NamedTuple):
    """A port of the node that a pod takes."""

    protocol: str
    address: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Whether both cannot be open at once: no address means all of them."""
        same = (self.protocol, self.port) == (other.protocol, other.port)
        return same and (self.address == other.address or _EVERY in (self.address, other.address))


def host_ports_of(pod: KubeletPod) -> frozenset[HostPort]:
    """The ports of its node that a pod takes."""
    ports = [port for container in pod.spec.containers or () for port in container.ports or () if port.host_port]
    return frozenset(HostPort(port.protocol or "TCP", port.host_ip or _EVERY, port.host_port) for port in ports)


def requests_of(pod: KubeletPod) -> dict[str, int]:
    """What a pod takes of its node, in thousandths: containers together, or one init container if that is more.

    A sidecar (an init container that restarts) runs beside everything that starts after it.
    """
    total: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers or ():
        own = _amounts(container.resources)
        if container.restart_policy == "Always":
            _add(total, own)
            _raise(peak, total)
        else:
            _raise(peak, {name: own.get(name, 0) + total.get(name, 0) for name in {*own, *total}})
    for container in pod.spec.containers or ():
        _add(total, _amounts(container.resources))
    _raise(peak, total)
    if pod.spec.resources is not None:
        peak.update(_amounts(pod.spec.resources))
    _add(peak, {name: quantity.milli(amount) for name, amount in (pod.spec.overhead or {}).items()})
    peak["pods"] = 1000
    return peak


def _amounts(resources: ResourceRequirements | None) -> dict[str, int]:
    asked = (resources.requests if resources is not None else None) or {}
    return {name: quantity.milli(amount) for name, amount in asked.items()}


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(peak: dict[str, int], other: dict[str, int]) -> None:
    for name, amount in other.items():
        peak[name] = max(peak.get(name, 0), amount)
