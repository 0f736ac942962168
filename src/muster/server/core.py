"""The API server itself: from a request to a response or a watch stream. No HTTP library, no socket.

`handle` routes, negotiates the form of the answer and calls the handler of the verb. Every failure leaves here as a
Status; an error that is not foreseen is logged and answered with 500. Authorization is not done here:
`muster.server.auth.gate` does it for requests from outside, and in-process clients have all rights.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from muster.api.errors import ApiError, internal, method_not_allowed, no_such_path, not_found
from muster.client.local import LocalClient, RawEvent
from muster.server import codec, frames, media, metadata, object_lister
from muster.server.admission.bootstrap import bootstrap_objects
from muster.server.admission.eviction import BudgetGuard
from muster.server.admission.resource_quota import QuotaGuard
from muster.server.backend import Backend, ServerHooks, StoreReader
from muster.server.bodies import decode_object
from muster.server.call import Call, check_dry_run
from muster.server.custom_resources.definitions import Definitions
from muster.server.discovery import Discovery
from muster.server.error_status import error_response
from muster.server.health import Health
from muster.server.identifiers import Identifiers, RandomIdentifiers
from muster.server.object_deleter import ObjectDeleter, delete_options
from muster.server.object_lister import ObjectLister, parse_revision, reach
from muster.server.object_patcher import ObjectPatcher
from muster.server.object_writer import ObjectWriter, Outcome, put, shown
from muster.server.openapi import OpenApi
from muster.server.paths import ResourcePath
from muster.server.registry import Registry
from muster.server.request import ADMIN, Request, Response, User, WatchStream
from muster.server.resources.kind import Obj, Write
from muster.server.store.base import Store
from muster.server.store.records import StoreFailedError
from muster.server.subresources import Subresources
from muster.server.table import Printer
from muster.server.watch import Watch

log = logging.getLogger(__name__)

_MAIN_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ONE_OBJECT = frozenset(("get", "update", "patch", "delete"))


class ApiServer:
    """The API server. One per store; call it from one event loop."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        *,
        hooks: ServerHooks | None = None,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        identifiers: Identifiers | None = None,
        user: User = ADMIN,
    ) -> None:
        self.store = store
        self.user = user  # who in-process clients are
        self.registry = registry
        self.hooks = hooks or ServerHooks()
        self.reader = StoreReader(store, registry)
        rng = rng or random.Random()
        identifiers = identifiers or RandomIdentifiers(rng)
        self.backend = Backend(store, registry, self.reader, clock, rng, identifiers, self.hooks)
        if self.hooks.guard_eviction is None:
            self.hooks.guard_eviction = BudgetGuard(LocalClient(self), clock)
        if self.hooks.charge_quota is None:
            self.hooks.charge_quota = QuotaGuard(LocalClient(self))
        self._writer = ObjectWriter(self.backend)
        self._deleter = ObjectDeleter(self.backend, self._writer)
        self._patcher = ObjectPatcher(self.backend, self._writer)
        self._lister = ObjectLister(self.backend)
        self._subresources = Subresources(self.backend, self._writer, self._deleter, self._patcher)
        self._discovery = Discovery(registry, self.hooks.remote)
        self._health = Health(self.backend)
        self._openapi = OpenApi(registry, self.hooks.remote)
        self._definitions = Definitions(store, registry, self._ask_webhook)

    async def _ask_webhook(self, client_config: Obj, body: Obj, seconds: float) -> Obj:
        ask = self.hooks.ask_webhook
        if ask is None:
            raise internal("this server calls no webhooks")
        return await ask(client_config, body, seconds, self.reader)

    async def bootstrap(self) -> None:
        """Create the objects that every cluster has from the start, where they are missing."""
        client = LocalClient(self)
        for resource, obj in bootstrap_objects():
            try:
                await client.create(resource, obj)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise

    def unserved(self) -> dict[str, int]:
        """How many stored objects there are of each kind that is not served: they are kept, and shown to nobody."""
        self._definitions.follow()
        tables = {kind.table for kind in self.registry.kinds}
        return {name: count for name, count in self.store.counts().items() if name not in tables}

    async def handle(self, request: Request) -> Response | WatchStream:
        """Answer one request."""
        try:
            return await self._route(request)
        except ApiError as error:
            # The error may be caused by a write that is accepted but not yet durable: wait for it before answering.
            if request.method not in ("GET", "HEAD"):
                await self.store.settle()
            return error_response(error)
        except StoreFailedError as error:
            return error_response(error)
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            return error_response(error)

    async def ask(
        self, method: str, path: str, query: Mapping[str, str], body: bytes, content_type: str
    ) -> tuple[int, bytes]:
        """One call of an in-process client, as the control plane itself: status and body."""
        headers = {"content-type": content_type} if body else {}
        answer = await self.handle(Request(method, path, _spread(query), headers, body, self.user))
        if isinstance(answer, Response):
            return answer.status, answer.body
        return 200, b"".join([frame async for frame in answer.frames])

    async def follow(self, path: str, query: Mapping[str, str]) -> AsyncIterator[list[RawEvent]]:
        """A watch of an in-process client, without frames around the objects."""
        request = Request("GET", path, _spread(query), {}, b"", self.user)
        self._definitions.follow()
        if request.target is None or not request.target.plural:
            raise no_such_path()
        call = self._call(request, request.target)
        view = call.view
        watch = await Watch(self.backend, call).open(call)
        async with aclosing(watch.batches()) as batches:
            async for batch in batches:
                yield [RawEvent(kind, view.object(at) if at is not None else b"", rv) for kind, at, rv, _ in batch]

    async def close(self) -> None:
        """End all watches. The store is closed by whoever opened it."""
        self.backend.closing = True
        self.store.wake()

    async def _route(self, request: Request) -> Response | WatchStream:
        where = request.target
        self._definitions.follow()
        remote = self.hooks.remote
        if remote is not None and (service := remote.find(request)) is not None:
            return await remote.answer(request, service)
        if where is None or not where.plural:
            page = self._discovery.answer(request) or self._health.answer(request) or self._openapi.answer(request)
            page = page or await self._openapi.swagger(request)
            if page is None:
                raise no_such_path()
            return page
        call = self._call(request, where)
        answer = await self._dispatch(call)
        if isinstance(answer, Response):
            # A change that lost a race was computed again, and may have warned again.
            answer.warnings += dict.fromkeys(call.warnings)
        return answer

    def _call(self, request: Request, where: ResourcePath) -> Call:
        view = self.registry.view(where.group, where.version, where.plural)
        if view is None:
            raise no_such_path()
        kind = view.kind
        if where.namespace and not kind.namespaced:
            raise no_such_path()
        call = Call(request, _verb(request, where), kind, view, where)
        if where.subresource:
            if where.subresource not in kind.subresources:
                raise no_such_path()
            return call
        if call.verb not in kind.verbs:
            raise method_not_allowed(kind.group, kind.plural, call.verb)
        misplaced = not where.name if call.verb in _ONE_OBJECT else where.name and call.verb == "create"
        if misplaced or (kind.namespaced and not where.namespace and call.verb not in ("list", "watch")):
            raise _not_allowed()
        return call

    async def _dispatch(self, call: Call) -> Response | WatchStream:
        request = call.request
        if call.path.subresource:
            return await self._subresources.answer(call)
        if call.verb == "watch":
            return await self._watch(call)
        call.form = media.negotiate(request.headers.get("accept", ""))
        if call.verb == "get":
            return await self._get(call)
        if call.verb == "list":
            return await self._list(call)
        call.dry_run = check_dry_run(request)
        match call.verb:
            case "deletecollection":
                return await self._delete_collection(call)
            case "create":
                return await self._create(call)
            case "update":
                return await self._update(call)
            case "patch":
                return self._written(call, await self._patcher.patch(call))
            case _:
                return await self._delete(call)

    # Reading

    async def _get(self, call: Call) -> Response:
        asked = parse_revision(call.request)
        if asked:
            await reach(self.store, asked)
        record = self.store.get(call.kind.table, call.key)
        if record is None:
            raise not_found(call.kind.group, call.kind.plural, call.name)
        await codec.prepare(call.kind, (record,))
        if call.form.shape:
            return media.answer(200, media.encode(Printer(self.backend, call).one(record)), call.form)
        return media.answer(200, call.view.object(record), call.form)

    async def _list(self, call: Call) -> Response:
        page = await self._lister.page(call)
        if call.form.shape:
            return media.answer(200, media.encode(Printer(self.backend, call).page(page)), call.form)
        return media.answer(200, object_lister.body(call, page), call.form)

    async def _watch(self, call: Call) -> WatchStream:
        call.form = media.negotiate(call.request.headers.get("accept", ""))
        watch = await Watch(self.backend, call).open(call)
        if call.form.shape:
            frame = frames.shaped(call, Printer(self.backend, call).event)
            return WatchStream(frames.stream(watch, frame), f"{call.form.content_type};stream=watch")
        return WatchStream(frames.stream(watch, frames.plain(call.view)))

    # Writing

    async def _create(self, call: Call) -> Response:
        obj = decode_object(call)
        if call.kind.answer is not None:
            return await self._review(call, obj)
        return self._written(call, await self._writer.create(call, obj))

    async def _review(self, call: Call, obj: Obj) -> Response:
        # What is answered and not stored has no table and no bare metadata.
        call.form = media.negotiate(call.request.headers.get("accept", ""), transforms=False)
        write = Write(
            call.kind,
            "CREATE",
            call.namespace,
            "",
            "",
            call.user,
            call.dry_run,
            self.reader,
            self.backend.clock(),
            call.warnings,
            call.view.version,
        )
        assert call.kind.answer is not None
        dynamic = self.hooks.admission
        if dynamic is not None and dynamic.asked(write):
            obj = await dynamic.mutate(write, obj, None) or obj
            await dynamic.validate(write, obj, None)
        answered = await call.kind.answer(write, obj)
        answered.setdefault("metadata", {})
        return media.answer(201, media.encode(answered), call.form)

    async def _update(self, call: Call) -> Response:
        obj = decode_object(call)
        missing = call.kind.create_on_update and self.store.head(call.kind.table, call.key) is None
        if missing and not metadata.of(obj).get("resourceVersion"):
            return self._written(call, await self._writer.create(call, obj))
        make, expected = put(call, obj)
        return self._written(call, await self._writer.change(call, make, expected=expected))

    async def _delete(self, call: Call) -> Response:
        outcome = await self._deleter.delete(call, delete_options(call))
        if outcome.removed and not call.kind.returns_deleted:
            return Response(200, media.encode(_success(call, outcome.obj)))
        return self._written(call, outcome)

    async def _delete_collection(self, call: Call) -> Response:
        options = delete_options(call)
        page = await self._lister.page(call)
        for record in page.records:
            one = Call(call.request, "delete", call.kind, call.view, _at(call.path, record.key), call.form)
            one.dry_run = call.dry_run
            try:
                await self._deleter.delete(one, options)
            except ApiError as error:
                if error.code != 404:
                    raise
        return media.answer(200, object_lister.body(call, page), call.form)

    def _written(self, call: Call, outcome: Outcome) -> Response:
        status = 201 if outcome.created else 200
        if call.form.shape and outcome.record is not None:
            return media.answer(status, media.encode(Printer(self.backend, call).one(outcome.record)), call.form)
        return media.answer(status, shown(call, outcome), media.Form(yaml=call.form.yaml))


def _spread(query: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {name: (value,) for name, value in query.items()}


def _verb(request: Request, where: ResourcePath) -> str:
    method = request.method
    if method in ("GET", "HEAD"):
        if where.subresource:
            return "get"
        if where.watch or request.flag("watch"):
            return "watch"
        return "get" if where.name else "list"
    if method == "DELETE" and not where.name:
        return "deletecollection"
    verb = _MAIN_VERBS.get(method)
    if verb is None:
        raise _not_allowed()
    return verb


def _not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def _at(path: ResourcePath, key: tuple[str, str]) -> ResourcePath:
    return ResourcePath(path.group, path.version, path.plural, key[0], key[1])


def _success(call: Call, obj: Obj) -> dict[str, Any]:
    details: Obj = {"name": call.name}
    if call.kind.group:
        details["group"] = call.kind.group
    details |= {"kind": call.kind.plural, "uid": obj["metadata"].get("uid", "")}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
