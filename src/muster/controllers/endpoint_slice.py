"""EndpointSlices: the addresses of the pods that a Service selects, up to a hundred in a slice.

Slices are changed as little as possible: an endpoint stays in the slice it is in. Slices that somebody else manages
(by their label) are left alone.
"""

from __future__ import annotations

from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import ENDPOINT_SLICES, NODES, PODS, SERVICES
from muster.controllers.controller import Controller
from muster.controllers.endpoints import Ports, endpoint_of, is_endpoint, ports_of, selected_by
from muster.controllers.objects import EndpointSliceView, PodView, UnstructuredObject
from muster.controllers.pod_control import controller_reference
from muster.controllers.status import JSON

SERVICE_LABEL = "kubernetes.io/service-name"
MANAGER_LABEL = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
HEADLESS_LABEL = "service.kubernetes.io/headless"
_MOST_IN_A_SLICE = 100
_BATCH = 0.05  # seconds in which changes of pods are gathered


class EndpointSliceController(Controller):
    name = "endpointslice-controller"
    workers = 4

    def setup(self) -> None:
        self._services = self.watch_keys(SERVICES)
        self._by_namespace = self._services.index("by-namespace", _selecting_in)
        self._pods = self.watch(PODS)
        self._pods_in = self._pods.index("by-namespace", lambda pod: pod.metadata.namespace)
        self._nodes = self.watch(NODES)
        self._slices = self.watch(ENDPOINT_SLICES)
        self._managed = self._slices.index("by-service", _service_of)
        self._pods.on_change(self._pod_changed)
        self._slices.on_change(self._slice_changed)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if old is not None and new is not None and _as_endpoint(old) == _as_endpoint(new):
            return
        found = [pod for pod in (old, new) if pod is not None]
        for service in self._by_namespace.get(found[0].metadata.namespace):
            if any(selected_by(service, pod) for pod in found):
                self.queue.add_after((service.metadata.namespace, service.metadata.name), _BATCH)

    def _slice_changed(self, old: EndpointSliceView | None, new: EndpointSliceView | None) -> None:
        key = _service_of(new if new is not None else old)
        if key is not None:
            self.queue.add_after(key, _BATCH)

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        service: UnstructuredObject | None = self._services.get(*key)
        if service is None or service.metadata.deletion_timestamp is not None:
            return None  # its slices are owned by it
        if not service.spec.get("selector") or service.spec.get("type") == "ExternalName":
            return None
        wanted: dict[Ports, list[JSON]] = {}
        for pod in self._pods_in.get(service.metadata.namespace):
            if is_endpoint(service, pod):
                node: UnstructuredObject | None = self._nodes.get("", pod.spec.node_name)
                wanted.setdefault(ports_of(service, pod), []).append(endpoint_of(service, pod, node))
        if not wanted:
            wanted[()] = []  # a Service without endpoints has one empty slice
        slices: list[EndpointSliceView] = self._managed.get(key)
        for ports in wanted.keys() | {_ports_in(each) for each in slices}:
            own = [each for each in slices if _ports_in(each) == ports]
            if ports in wanted:
                await self._write(service, ports, wanted[ports], own)
            else:
                await self._delete(own)
        return None

    async def _write(
        self, service: UnstructuredObject, ports: Ports, wanted: list[JSON], slices: list[EndpointSliceView]
    ) -> None:
        """Make the slices of one set of ports hold these endpoints."""
        new = {_uid_of(each): each for each in wanted}
        contents = [[new.pop(uid) for old in each.endpoints or () if (uid := _uid_of(old)) in new] for each in slices]
        for kept in contents:
            for uid in list(new)[: _MOST_IN_A_SLICE - len(kept)]:
                kept.append(new.pop(uid))
        for each, kept in zip(slices, contents, strict=True):
            if kept or each is slices[0]:
                await self._update(service, each, kept)
            else:
                await self._delete([each])
        left = list(new.values())
        if not slices and not left:
            await self._create(service, ports, [])
        for start in range(0, len(left), _MOST_IN_A_SLICE):
            await self._create(service, ports, left[start : start + _MOST_IN_A_SLICE])

    async def _delete(self, slices: list[EndpointSliceView]) -> None:
        for each in slices:
            meta = each.metadata
            try:
                await self.client.delete(ENDPOINT_SLICES, meta.name, meta.namespace, uid=meta.uid)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    async def _update(self, service: UnstructuredObject, known: EndpointSliceView, endpoints: list[JSON]) -> None:
        name, namespace = known.metadata.name, known.metadata.namespace
        if known.metadata.deletion_timestamp is not None:
            return
        labels = _labels(service)
        if endpoints == (known.endpoints or []) and labels == (known.metadata.labels or {}):
            return
        stale = {key: None for key in known.metadata.labels or {} if key not in labels}
        meta = {"resourceVersion": known.metadata.resource_version, "labels": {**stale, **labels}}
        await self.client.patch(ENDPOINT_SLICES, name, {"metadata": meta, "endpoints": endpoints}, namespace)

    async def _create(self, service: UnstructuredObject, ports: Ports, endpoints: list[JSON]) -> None:
        meta = service.metadata
        body: JSON = {
            "metadata": {
                "generateName": f"{meta.name}-",
                "namespace": meta.namespace,
                "labels": _labels(service),
                "ownerReferences": [controller_reference(SERVICES, meta)],
            },
            "addressType": (service.spec.get("ipFamilies") or ["IPv4"])[0],
            "endpoints": endpoints,
            "ports": [dict(port) for port in ports],
        }
        await self.client.create(ENDPOINT_SLICES, body, meta.namespace)


def _selecting_in(service: UnstructuredObject) -> str | None:
    return service.metadata.namespace if service.spec.get("selector") else None


def _service_of(found: Any) -> tuple[str, str] | None:
    """The Service whose slice this is, of slices that are managed here."""
    labels: dict[str, str] = found.metadata.labels or {}
    if labels.get(MANAGER_LABEL) != MANAGER or SERVICE_LABEL not in labels:
        return None
    return (found.metadata.namespace, labels[SERVICE_LABEL])


def _labels(service: UnstructuredObject) -> dict[str, str]:
    labels = {**(service.metadata.labels or {}), SERVICE_LABEL: service.metadata.name, MANAGER_LABEL: MANAGER}
    if service.spec.get("clusterIP") == "None":
        labels[HEADLESS_LABEL] = ""
    return labels


def _ports_in(found: EndpointSliceView) -> Ports:
    return tuple(tuple(sorted(port.items())) for port in found.ports or ())


def _uid_of(endpoint: JSON) -> str:
    return str((endpoint.get("targetRef") or {}).get("uid") or "")


def _as_endpoint(pod: PodView) -> tuple[object, ...]:
    return (pod.metadata.labels, pod.status.pod_ip, pod.status.phase, pod.ready, pod.going, pod.spec.node_name)
