"""LimitRanges fill in what containers leave out, and refuse what is out of bounds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.core.core_api import PODS, Answer, Api

RANGES = "/api/v1/namespaces/default/limitranges"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


async def limited(**item: Any) -> Api:
    api = await Api().start()
    made = await api.post(RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    assert made.code == 201, made.text
    return api


async def create_pod(api: Api, **resources: Any) -> Answer:
    container = {"name": "c", "image": "i", "resources": resources}
    return await api.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})


async def test_containers_get_the_defaults_that_they_lack():
    api = await limited(
        type="Container", default={"cpu": "500m"}, defaultRequest={"cpu": "100m"}, min={"memory": "1Mi"}
    )
    pod = (await create_pod(api)).body
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m", "memory": "1Mi"}}
    said = pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    assert said == "LimitRanger plugin set: cpu, memory request for container c; cpu limit for container c"


async def test_a_range_without_a_default_takes_it_from_its_maximum():
    api = await limited(type="Container", max={"cpu": "2"})
    item = (await api.get(f"{RANGES}/l")).body["spec"]["limits"][0]
    assert item["default"] == {"cpu": "2"}
    assert item["defaultRequest"] == {"cpu": "2"}


@pytest.mark.parametrize(
    ("item", "resources", "message"),
    [
        (
            {"type": "Container", "max": {"cpu": "1"}},
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            {"type": "Container", "min": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        ({"type": "Pod", "max": {"memory": "1Gi"}}, {}, "maximum memory usage per Pod is 1Gi.  No limit is specified"),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
    ],
)
async def test_what_is_out_of_bounds_is_refused(item: Any, resources: Any, message: str):
    refused = await create_pod(await limited(**item), **resources)
    assert refused.code == 403
    assert message in refused.body["message"]


async def test_claims_have_bounds_too():
    api = await limited(type="PersistentVolumeClaim", max={"storage": "1Gi"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    refused = await api.post(CLAIMS, {"metadata": {"name": "c"}, "spec": spec})
    assert "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi" in refused.body["message"]


async def test_what_is_no_range_is_refused():
    api = await Api().start()
    item = {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}
    refused = await api.post(RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    assert refused.code == 422
    assert "min value 2 is greater than max value 1" in refused.body["message"]
