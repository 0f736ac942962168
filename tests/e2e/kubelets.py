"""Somebody who plays kubelet where nodes are only objects: pods that are bound run, pods that are deleted go."""

import json
import threading
from types import TracebackType
from typing import Any, Self

from muster.testing import a_node
from tests.e2e.processes import Kubectl

Obj = dict[str, Any]

_PAUSE = 0.5
_RUNNING = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
}


class Kubelets:
    """Plays kubelet for all nodes of a cluster while the block runs."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._ended.wait(_PAUSE):
            listed = json.loads(self._kubectl("get", "pods", "--namespace", "default", "-o", "json"))["items"]
            going = [pod for pod in listed if "deletionTimestamp" in pod["metadata"]]
            new = [pod for pod in listed if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending"]
            for pod in new:
                if pod not in going:
                    self._write(pod, "patch", "--subresource=status", "-p", json.dumps({"status": _RUNNING}))
            for pod in going:
                self._write(pod, "delete", "--grace-period=0", "--force", "--wait=false")

    def _write(self, pod: Obj, verb: str, *arguments: str) -> None:
        """A pod that is gone meanwhile is no fault."""
        try:
            self._kubectl(verb, "pod", pod["metadata"]["name"], "--namespace", "default", *arguments)
        except AssertionError as error:
            if "not found" not in str(error) and "NotFound" not in str(error):
                raise


def racks(count: int, per_rack: int, per_block: int, cpu: str) -> list[Obj]:
    """Nodes in racks and blocks, labelled as those of `muster up` are."""
    made: list[Obj] = []
    for number in range(count):
        name, rack = f"node-{number}", number // per_rack
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "topology.muster.dev/rack": f"rack-{rack}",
            "topology.muster.dev/block": f"block-{rack // per_block}",
        }
        made.append(a_node(name, cpu=cpu, memory="64Gi", pods=110, **labels))
    return made
