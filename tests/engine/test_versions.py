"""The same gang on every API that serves groups: native, Kubernetes 1.36, and Muster's own CRDs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from muster.api.errors import ApiError, no_such_path
from muster.api.resources import EVENTS, POD_GROUPS, PODS, Resource
from muster.client.local import LocalClient
from muster.client.protocol import WatchEvent
from muster.engine import options
from muster.engine.api_discovery import CRD_GROUP, CRDS, NATIVE_OLD
from muster.engine.engine import Engine
from muster.engine.group_membership import LABEL
from tests.client.clocks import QuickClock
from tests.engine.conftest import World, eventually
from tests.engine.faulty import FaultyClient

OLD = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", True)


class Kubernetes136(FaultyClient):
    """Only v1alpha2 of the group API is there."""

    async def request(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        if path.startswith(("/apis/scheduling.k8s.io/v1beta1", "/apis/scheduling.k8s.io/v1alpha3")):
            raise no_such_path()
        return await super().request(method, path, *args, **kwargs)


class StockWithCrds(FaultyClient):
    """No native group API; the kinds are custom resources, which know no strategic merge."""

    async def request(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        if path.startswith("/apis/scheduling.k8s.io/v1") and not path.endswith("/v1"):
            raise no_such_path()
        return await super().request(method, path.replace(CRD_GROUP, "scheduling.k8s.io"), *args, **kwargs)

    async def list(self, resource: Any, *args: Any, **kwargs: Any) -> Any:
        return await super().list(_native(resource), *args, **kwargs)

    async def watch(self, resource: Any, *args: Any, **kwargs: Any) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(_native(resource), *args, **kwargs):
            yield event

    async def get(self, resource: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return await super().get(_native(resource), name, *args, **kwargs)

    async def patch(self, resource: Any, name: str, patch: Any, *args: Any, **kwargs: Any) -> Any:
        if resource.group == CRD_GROUP and kwargs.get("type") == "strategic":
            raise ApiError(415, "UnsupportedMediaType", "not supported by custom resources")
        return await super().patch(_native(resource), name, patch, *args, **kwargs)


def _native(resource: Resource) -> Resource:
    return resource._replace(group="scheduling.k8s.io") if resource.group == CRD_GROUP else resource


async def start(world: World, client: FaultyClient) -> Engine:
    engine = Engine(client, options.config(options.source(None)), clock=QuickClock())
    await world.launch(engine)
    return engine


async def until_bound(world: World, names: list[str]) -> None:
    async def bound() -> bool:
        return all([await world.node_of(name) for name in names])

    await eventually(bound)


async def until_said(world: World, resource: Resource, name: str, condition: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def said() -> bool:
        group = await world.direct.get(resource, name, "default")
        for each in group.get("status", {}).get("conditions", []):
            if each["type"] == condition and each["status"] == "True":
                found.update(each)
        return bool(found)

    await eventually(said)
    return found


async def test_a_gang_of_kubernetes_1_36_is_bound_and_told_in_its_own_words(world: World):
    await world.node("n1", cpu="4")
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": "PodGroup"}
    await world.direct.create(OLD, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    for number in range(2):
        await world.pod(f"g-{number}", group="g")

    engine = await start(world, Kubernetes136(LocalClient(world.server)))

    assert engine.served is not None
    assert engine.served.groups == NATIVE_OLD
    await until_bound(world, ["g-0", "g-1"])
    await until_said(world, OLD, "g", "PodGroupScheduled")


async def test_with_crds_the_label_makes_the_gang_and_the_whole_list_of_conditions_is_written(world: World):
    await world.node("n1", cpu="4")
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    await world.direct.create(POD_GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    other = {
        "type": "Other",
        "status": "True",
        "reason": "Kept",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    await world.direct.patch(POD_GROUPS, "g", {"status": {"conditions": [other]}}, "default", subresource="status")
    await world.pod("alone", labels={LABEL: "g"})

    engine = await start(world, StockWithCrds(LocalClient(world.server)))

    assert engine.served is not None
    assert engine.served.groups == CRDS
    await engine.settled()
    assert await world.node_of("alone") == "", "one member of two does not start"
    await world.pod("second", labels={LABEL: "g"})
    await until_bound(world, ["alone", "second"])
    await until_said(world, POD_GROUPS, "g", "PodGroupInitiallyScheduled")
    await until_said(world, POD_GROUPS, "g", "Other")


async def test_with_crds_a_label_that_changes_is_reported_on_the_pod(world: World):
    await world.pod("p", labels={LABEL: "g"})
    engine = await start(world, StockWithCrds(LocalClient(world.server)))

    await world.direct.patch(PODS, "p", {"metadata": {"labels": {LABEL: "other"}}}, "default")

    async def warned() -> bool:
        events = (await world.direct.list(EVENTS, "default")).items
        return any(each["reason"] == "PodGroupLabelChanged" and each["type"] == "Warning" for each in events)

    await eventually(warned)
    known = engine.sources["Pod"].known["default", "p"]
    assert known.spec.scheduling_group.pod_group_name == "g"
