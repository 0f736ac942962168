"""The state of the simulated kubelets: nodes with their pods, the stage of each pod, and how long stages take.

No I/O: the simulation updates it from its watches. Every pod is in one of four stages, and one action leaves each
stage. A node without power does nothing; when it is back, its pods continue from their stage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from muster.api import quantity
from muster.nodes.views import (
    LOG,
    RUN_SECONDS,
    START_SECONDS,
    STOP_SECONDS,
    HostPort,
    KubeletNode,
    KubeletPod,
    host_ports_of,
    requests_of,
)


class PodStage(Enum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(slots=True)
class PodState:
    """A pod on a simulated node."""

    pod: KubeletPod
    node: str
    requests: dict[str, int]
    stage: PodStage
    address: str = ""
    started_at: float = 0.0  # of the present run of its containers
    first_started_at: float = 0.0  # of the pod, which its deadline counts from
    restarts: int = 0
    turn: int = 0  # counts stages, so that an action planned for an earlier one is recognised as stale
    lines: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])


@dataclass(slots=True)
class NodeState:
    """A simulated node and what its pods use."""

    view: KubeletNode
    index: int
    powered: bool = True
    used: dict[str, int] = field(default_factory=dict[str, int])
    pods: set[str] = field(default_factory=set[str])  # uids
    ports: dict[str, frozenset[HostPort]] = field(default_factory=dict[str, frozenset[HostPort]])  # by uid
    addresses: int = 0

    def take(self, state: PodState) -> None:
        uid = state.pod.metadata.uid
        if uid not in self.pods:
            self.pods.add(uid)
            for name, amount in state.requests.items():
                self.used[name] = self.used.get(name, 0) + amount
            if ports := host_ports_of(state.pod):
                self.ports[uid] = ports

    def release(self, state: PodState) -> None:
        uid = state.pod.metadata.uid
        if uid in self.pods:
            self.pods.discard(uid)
            self.ports.pop(uid, None)
            for name, amount in state.requests.items():
                self.used[name] = self.used.get(name, 0) - amount

    def refusal(self, state: PodState) -> tuple[str, str] | None:
        """(reason, message) when a pod cannot run beside those that are there."""
        taken = [port for ports in self.ports.values() for port in ports]
        if any(port.conflicts(other) for port in host_ports_of(state.pod) for other in taken):
            return "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
        return self._shortage(state.requests)

    def _shortage(self, requests: dict[str, int]) -> tuple[str, str] | None:
        allocatable = self.view.status.allocatable or {}
        for name in sorted(requests, key=lambda name: (name != "pods", name)):
            asked, used = requests[name], self.used.get(name, 0)
            capacity = quantity.milli(allocatable.get(name, 0))
            if asked > 0 and used + asked > capacity:
                scale = 1 if name == "cpu" else 1000
                message = (
                    f"Node didn't have enough resource: {name}, requested: {asked // scale}, "
                    f"used: {used // scale}, capacity: {capacity // scale}"
                )
                return f"OutOf{name}", message
        return None

    def next_address(self, network: str) -> str:
        self.addresses = self.addresses % 253 + 1
        return f"{network}.{self.addresses + 1}"


@dataclass(frozen=True, slots=True)
class Timing:
    """How long stages take, for pods without the annotations of `muster.nodes.views`."""

    start: float = 0.5
    stop: float = 1.0  # from the request to end until the end
    batch_run: float = 10.0  # pods that are not restarted and have no run-seconds annotation

    def start_delay(self, pod: KubeletPod) -> float:
        asked = pod.number(START_SECONDS)
        return self.start if asked is None else asked

    def run_length(self, pod: KubeletPod) -> float | None:
        """Seconds that a pod runs; None for ever."""
        asked = pod.number(RUN_SECONDS)
        if asked is not None:
            return asked
        return None if pod.spec.restart_policy == "Always" else self.batch_run

    def end_of(self, state: PodState) -> tuple[float, bool]:
        """When a running pod ends, and whether that is because its deadline is exceeded; never is infinity."""
        length, deadline = self.run_length(state.pod), state.pod.spec.active_deadline_seconds
        by_itself = state.started_at + length if length is not None else math.inf
        stopped = state.first_started_at + deadline if deadline is not None else math.inf
        return min(by_itself, stopped), stopped < by_itself

    def stop_delay(self, pod: KubeletPod) -> float:
        """Seconds until a deleted pod has stopped: the sleep of `preStop`, then its end; at most its grace period."""
        asked = pod.number(STOP_SECONDS)
        sleep = max((each.sleep_before_stop for each in pod.spec.containers or ()), default=0)
        grace = pod.metadata.deletion_grace_period_seconds
        return min(sleep + (self.stop if asked is None else asked), float(grace if grace is not None else 30))

    def said_of(self, pod: KubeletPod) -> list[str]:
        """What the log of a pod that starts says: what its containers would run, for how long, and what they write."""
        length, code = self.run_length(pod), pod.exit_code
        until = "until it is stopped" if length is None else f"for {length:g} s, then ends with exit code {code}"
        lines: list[str] = []
        for each in pod.spec.containers or ():
            words = " ".join((*(each.command or ()), *(each.args or ())))
            lines.append(
                f"simulated container {each.name}: image {each.image}{f', {words}' if words else ''}; runs {until}"
            )
        return [*lines, *(pod.metadata.annotations or {}).get(LOG, "").splitlines()]


def pod_state_of(pod: KubeletPod) -> PodState:
    """The state of a pod from its phase, also of one that a simulation of another process has started."""
    stage = {"Running": PodStage.RUNNING, "Succeeded": PodStage.ENDED, "Failed": PodStage.ENDED}.get(
        pod.status.phase, PodStage.STARTING
    )
    return PodState(pod, pod.spec.node_name, requests_of(pod), stage)
