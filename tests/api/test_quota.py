"""What objects count for."""

from __future__ import annotations

from typing import Any

from muster.api.quota import counted_resources, difference, parsed, rendered, total, usage


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def asks(**requests: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}}


def test_init_containers_count_where_one_of_them_takes_more():
    found = usage("", "pods", pod(initContainers=[asks(cpu="3")], containers=[asks(cpu="1"), asks(cpu="1")]))
    assert rendered(found)["requests.cpu"] == "3"


def test_a_sidecar_counts_beside_the_containers():
    sidecar = {**asks(cpu="1"), "restartPolicy": "Always"}
    assert rendered(usage("", "pods", pod(initContainers=[sidecar], containers=[asks(cpu="2")])))["cpu"] == "3"


def test_overhead_counts_and_gives_no_limit():
    found = rendered(usage("", "pods", pod(containers=[asks(memory="1Gi")], overhead={"memory": "1Gi", "cpu": "1"})))
    assert found["requests.memory"] == "2Gi"
    assert "limits.cpu" not in found


def test_extended_resources_count_as_requests():
    found = usage("", "pods", pod(containers=[{"resources": {"requests": {"nvidia.com/gpu": "2"}}}]))
    assert rendered(found)["requests.nvidia.com/gpu"] == "2"
    assert "nvidia.com/gpu" not in found


def test_the_resources_behind_the_names_of_a_quota():
    names = ["pods", "count/jobs.batch", "services.nodeports", "requests.storage", "requests.nvidia.com/gpu"]
    assert counted_resources(names) == {
        ("", "pods"),
        ("batch", "jobs"),
        ("", "services"),
        ("", "persistentvolumeclaims"),
    }


def test_sums_and_differences():
    one, other = parsed({"cpu": "500m"}), parsed({"cpu": "1", "memory": "1Gi"})
    assert rendered(total([one, other], ["cpu"])) == {"cpu": "1500m"}
    assert rendered(difference(other, one)) == {"cpu": "500m", "memory": "1Gi"}
