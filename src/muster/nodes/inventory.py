"""The simulated nodes: names, labels and capacity of a data centre of racks, blocks and zones.

Node i is in rack i // nodes_per_rack, that rack in block rack // racks_per_block, and blocks are spread over up to
three zones in order, so that nodes with adjacent numbers are close to each other. The position is in the
labels `topology.muster.dev/rack`, `topology.muster.dev/block` and `topology.kubernetes.io/zone`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.client.clock import timestamp
from muster.nodes.simulated_devices import SimulatedDriver

SIMULATED = "muster.dev/simulated"  # label: a kubelet of ours runs this node
FAILED = "muster.dev/failed"  # annotation "true": its power is cut
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
RACK = "topology.muster.dev/rack"
BLOCK = "topology.muster.dev/block"
GPU = "nvidia.com/gpu"
_ZONES = 3


@dataclass(frozen=True, slots=True)
class Inventory:
    """The nodes that `--nodes N --node-cpu … --nodes-per-rack …` asks for."""

    count: int = 0
    cpu: str = "64"
    memory: str = "512Gi"
    gpu: int = 0
    pods: int = 110
    nodes_per_rack: int = 8
    racks_per_block: int = 4
    prefix: str = "node-"
    drivers: tuple[SimulatedDriver, ...] = ()

    def names(self) -> list[str]:
        return [f"{self.prefix}{index}" for index in range(self.count)]

    def labels(self, index: int) -> dict[str, str]:
        rack = index // max(1, self.nodes_per_rack)
        block = rack // max(1, self.racks_per_block)
        blocks = self._block_of(self.count - 1) + 1
        zones = min(_ZONES, blocks)
        return {
            SIMULATED: "true",
            HOSTNAME: f"{self.prefix}{index}",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            REGION: "local",
            ZONE: f"zone-{block * zones // blocks}",
            BLOCK: f"block-{block}",
            RACK: f"rack-{rack}",
        }

    def _block_of(self, index: int) -> int:
        return index // max(1, self.nodes_per_rack) // max(1, self.racks_per_block)

    def resources(self) -> dict[str, str]:
        found = {"cpu": self.cpu, "memory": self.memory, "ephemeral-storage": "1Ti", "pods": str(self.pods)}
        if self.gpu:
            found[GPU] = str(self.gpu)
        return found

    def node(self, index: int, now: float) -> dict[str, Any]:
        """The object that a node's kubelet registers."""
        name = f"{self.prefix}{index}"
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": self.labels(index)},
            "spec": {"podCIDR": f"{pod_network(index)}.0/24", "podCIDRs": [f"{pod_network(index)}.0/24"]},
            "status": {
                "capacity": self.resources(),
                "allocatable": self.resources(),
                "conditions": [ready(now), *_pressures(now)],
                "addresses": [
                    {"type": "InternalIP", "address": host_address(index)},
                    {"type": "Hostname", "address": name},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                "nodeInfo": _info(name),
            },
        }


def pod_network(index: int) -> str:
    """The first three bytes of the addresses of a node's pods."""
    return f"10.{1 + index // 256 % 90}.{index % 256}"


def host_address(index: int) -> str:
    return f"172.{16 + index // 62500 % 16}.{index // 250 % 250}.{index % 250 + 1}"


def ready(now: float) -> dict[str, Any]:
    return _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", now)


def ready_unknown(now: float) -> dict[str, Any]:
    """The Ready condition of a node whose kubelet has stopped posting status."""
    return _condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", now)


def _pressures(now: float) -> list[dict[str, Any]]:
    return [
        _condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory", now),
        _condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure", now),
        _condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available", now),
    ]


def _condition(kind: str, status: str, reason: str, message: str, now: float) -> dict[str, Any]:
    when = timestamp(now)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": when,
        "lastTransitionTime": when,
    }


def _info(name: str) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "bootID": name,
        "containerRuntimeVersion": "simulated://1",
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": "v1.37.0-muster",
        "machineID": name,
        "operatingSystem": "linux",
        "osImage": "Muster simulated node",
        "systemUUID": name,
    }
