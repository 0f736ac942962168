"""The projections read what the wire carries, and nothing they do not need gets in their way."""

from pathlib import Path

import msgspec
import pytest
from bench.objects import job_pod

from muster.api import types

TESTDATA = Path(__file__).resolve().parents[3] / "shared" / "testdata" / "api"
KINDS = {
    "core.v1.Pod": types.Pod,
    "core.v1.Node": types.Node,
    "core.v1.Namespace": types.Namespace,
    "core.v1.PersistentVolume": types.PersistentVolume,
    "core.v1.PersistentVolumeClaim": types.PersistentVolumeClaim,
    "core.v1.Event": types.Event,
    "core.v1.Service": types.Service,
    "coordination.k8s.io.v1.Lease": types.Lease,
    "batch.v1.Job": types.Job,
    "apps.v1.ReplicaSet": types.ReplicaSet,
    "apps.v1.StatefulSet": types.StatefulSet,
    "policy.v1.PodDisruptionBudget": types.PodDisruptionBudget,
    "scheduling.k8s.io.v1.PriorityClass": types.PriorityClass,
    "storage.k8s.io.v1.StorageClass": types.StorageClass,
    "storage.k8s.io.v1.CSINode": types.CSINode,
}


@pytest.mark.skipif(not TESTDATA.is_dir(), reason="the objects of shared/testdata/api are not here")
@pytest.mark.parametrize("name", KINDS)
def test_an_object_with_every_field_is_read(name: str):
    path = TESTDATA / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no test object for {name}")
    full = msgspec.json.decode(path.read_bytes())
    read = msgspec.json.decode(path.read_bytes(), type=KINDS[name])
    assert read.metadata.name == "nameValue"
    assert _within(msgspec.json.decode(msgspec.json.encode(read)), full)


def _within(part: object, whole: object) -> bool:
    """Everything that the projection kept is in the object as it was."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and _within(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(_within, part, whole))
    return part == whole


def test_a_pod_is_read_without_what_the_scheduler_ignores():
    pod = msgspec.convert(job_pod(65), types.Pod)
    assert pod.metadata.name == "trainer-1-1-x7k2p"
    assert pod.spec.scheduling_group == types.SchedulingGroup("trainer-1")
    assert pod.spec.containers is not None
    assert pod.spec.containers[0].resources == types.ResourceRequirements(
        requests={"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}, limits={"nvidia.com/gpu": "1"}
    )
    assert not hasattr(pod.metadata, "managed_fields")
