"""A control plane for one test: in the test's own event loop, or in a thread behind a blocking client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, TypeVar

from muster.api.resources import Resource
from muster.client.protocol import Client, Obj, PatchType, WatchEvent
from muster.plane.options import NodeOptions, Options
from muster.plane.plane import Plane

T = TypeVar("T")
_START_SECONDS = 30.0


@asynccontextmanager
async def api_server(
    *, https: bool = False, controllers: bool = False, scheduler: bool = False, nodes: int = 0
) -> AsyncGenerator[Plane, None]:
    """A fresh in-memory control plane in the running event loop; `plane.client` is its client."""
    async with Plane(_options(https, controllers, scheduler, nodes)) as plane:
        yield plane


def _options(https: bool, controllers: bool, scheduler: bool, nodes: int, kubeconfig: Path | None = None) -> Options:
    return Options(
        https=https,
        kubeconfig=kubeconfig,
        controllers=controllers,
        scheduler=scheduler,
        nodes=NodeOptions(nodes),
        freeze=False,
    )


class Cluster:
    """A fresh in-memory control plane in a thread of its own, for tests that block."""

    client: BlockingClient

    def __init__(
        self, *, https: bool = False, controllers: bool = False, scheduler: bool = False, nodes: int = 0
    ) -> None:
        self._directory = TemporaryDirectory(prefix="muster-test-") if https else None
        self.kubeconfig = Path(self._directory.name) / "kubeconfig" if self._directory is not None else None
        self._plane = Plane(_options(https, controllers, scheduler, nodes, self.kubeconfig))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="muster-test", daemon=True)

    @property
    def url(self) -> str:
        """Where the server listens; empty without HTTPS."""
        return self._plane.url

    def __enter__(self) -> Cluster:
        self._thread.start()
        try:
            self._await(self._plane.start(), _START_SECONDS)
        except BaseException:
            self._close_loop()
            raise
        self.client = BlockingClient(self._plane.client, self._loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._await(self._plane.stop(), _START_SECONDS)
        finally:
            self._close_loop()

    def _await(self, work: Coroutine[Any, Any, None], timeout: float) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def _close_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        if self._directory is not None:
            self._directory.cleanup()


class BlockingClient:
    """The client protocol without `await`: each call runs in the cluster's own thread."""

    def __init__(self, client: Client, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> list[Obj]:
        """All objects of a collection."""
        found = self._client.list(resource, namespace, label_selector=label_selector, field_selector=field_selector)
        return self._wait(found).items

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int | None = None,
    ) -> Iterator[WatchEvent]:
        """Changes as they come; stop iterating to stop watching."""
        events: Any = self._client.watch(
            resource,
            namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
            timeout_seconds=timeout_seconds,
        )
        try:
            while True:
                try:
                    yield self._wait(anext(events))
                except StopAsyncIteration:
                    return
        finally:
            self._wait(events.aclose())

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj:
        return self._wait(self._client.get(resource, name, namespace))

    def create(self, resource: Resource, obj: Obj, namespace: str | None = None, *, dry_run: bool = False) -> Obj:
        return self._wait(self._client.create(resource, obj, namespace, dry_run=dry_run))

    def update(self, resource: Resource, obj: Obj, *, subresource: str | None = None, dry_run: bool = False) -> Obj:
        return self._wait(self._client.update(resource, obj, subresource=subresource, dry_run=dry_run))

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        type: PatchType = "merge",
        subresource: str | None = None,
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Obj:
        return self._wait(
            self._client.patch(
                resource,
                name,
                patch,
                namespace,
                type=type,
                subresource=subresource,
                field_manager=field_manager,
                force=force,
                dry_run=dry_run,
            )
        )

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> Obj:
        return self._wait(
            self._client.delete(
                resource,
                name,
                namespace,
                uid=uid,
                resource_version=resource_version,
                grace_period_seconds=grace_period_seconds,
                propagation_policy=propagation_policy,
            )
        )

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        self._wait(self._client.bind(namespace, name, uid, node))

    def request(self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> Obj:
        return self._wait(self._client.request(method, path, body, query))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
