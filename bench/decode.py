"""Decoding a list of 10,000 pods: the scheduler's projection beside plain dicts.

What informers pay on every start. `python -m bench.decode` prints the figures; `run()` gives them to `python -m bench`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import msgspec

from muster.api.types import Pod

PODS = 10_000


class PodList(msgspec.Struct, gc=False):
    items: list[Pod]


def a_pod(index: int) -> dict[str, Any]:
    """A pod as a Job makes it and a server stores it: about 3.4 KB, most of which the scheduler never reads."""
    name = f"trainer-{index // 64}-{index % 64}-x7k2p"
    mounts = [{"name": f"volume-{each}", "mountPath": f"/data/volume-{each}", "readOnly": True} for each in range(6)]
    environment = [{"name": f"SETTING_{each}", "value": f"value-of-setting-{each}"} for each in range(14)]
    fields = {f"f:{field}": {".": {}, f"f:{field}-part": {}} for field in ("labels", "spec", "containers", "resources")}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"trainer-{index // 64}-{index % 64}-",
            "namespace": f"team-{index % 20}",
            "uid": f"00000000-0000-4000-8000-{index:012d}",
            "resourceVersion": str(100_000 + index),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "trainer", "job-name": f"trainer-{index // 64}", "rank": str(index % 64)},
            "annotations": {"example.com/config": "x" * 200},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": f"trainer-{index // 64}",
                    "uid": "u",
                    "controller": True,
                }
            ],
            "managedFields": [
                {"manager": "job-controller", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields},
                {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields},
            ],
        },
        "spec": {
            "schedulerName": "muster",
            "priority": index % 5,
            "schedulingGroup": {"podGroupName": f"trainer-{index // 64}"},
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "worker",
                    "image": "registry.example.com/trainer:1.4",
                    "command": ["python", "-m", "trainer", "--steps", "100000"],
                    "env": environment,
                    "volumeMounts": mounts,
                    "resources": {
                        "requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"},
                        "limits": {"nvidia.com/gpu": "1"},
                    },
                    "terminationMessagePath": "/dev/termination-log",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "volumes": [{"name": f"volume-{each}", "configMap": {"name": f"config-{each}"}} for each in range(6)],
            "restartPolicy": "Never",
            "serviceAccountName": "trainer",
            "securityContext": {"runAsNonRoot": True, "fsGroup": 1000},
        },
        "status": {
            "phase": "Pending",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/5000 nodes fit"}
            ],
            "qosClass": "Burstable",
        },
    }


def run(pods: int = PODS, rounds: int = 3) -> dict[str, float]:
    """Milliseconds to decode the list, by way of decoding and with the collector on and off."""
    data = msgspec.json.encode({"items": [a_pod(index) for index in range(pods)]})
    projection, plain = msgspec.json.Decoder(PodList), msgspec.json.Decoder()
    one, event = msgspec.json.Decoder(Pod), msgspec.json.encode(a_pod(7))
    figures = {"bytes_per_pod": len(data) / pods}
    for name, decode in (("projection", projection.decode), ("dict", plain.decode)):
        figures[f"{name}_ms"] = _best(decode, data, rounds)
        gc.disable()
        try:
            figures[f"{name}_ms_gc_off"] = _best(decode, data, rounds)
        finally:
            gc.enable()
    started = time.perf_counter()
    for _ in range(pods):
        one.decode(event)
    figures["event_us"] = (time.perf_counter() - started) / pods * 1e6
    return figures


def _best(decode: Callable[[bytes], Any], data: bytes, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        started = time.perf_counter()
        kept = decode(data)
        best = min(best, time.perf_counter() - started)
        del kept
    return best * 1000


def main() -> None:
    figures = run()
    print(f"decode {PODS} pods of {figures['bytes_per_pod']:.0f} bytes (best of 3)")
    for name in ("projection", "dict"):
        on, off = figures[f"{name}_ms"], figures[f"{name}_ms_gc_off"]
        print(f"  {name:<12}{on:8.0f} ms   {off:8.0f} ms with the collector off")
    print(f"  {'one event':<12}{figures['event_us']:8.1f} us")


if __name__ == "__main__":
    main()
