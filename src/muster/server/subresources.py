"""The subresources: status, approval, scale, binding, eviction, log, token, finalize; streams, which no node serves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from muster.api.errors import (
    NOT_SUPPORTED,
    REQUIRED,
    ApiError,
    FieldError,
    bad_request,
    conflict,
    invalid,
    no_such_path,
    not_found,
)
from muster.server import bodies, codec, media, metadata
from muster.server.admission.node_restriction import check_node_token
from muster.server.backend import Backend
from muster.server.call import Call, check_dry_run
from muster.server.object_deleter import DeleteOptions, ObjectDeleter, options_from
from muster.server.object_patcher import ObjectPatcher
from muster.server.object_writer import MODIFIED, ObjectWriter, put, shown
from muster.server.request import Request, Response, WatchStream
from muster.server.resources.kind import Obj, Posted, Write
from muster.server.scales import Scales
from muster.server.store.records import Record, RevisionMismatchError

Answer = Response | WatchStream
_RACES = 8
STREAMS = ("exec", "attach", "portforward")
_BINDING = Posted("", "v1", "Binding")
_EVICTION = Posted("policy", "v1", "Eviction")
_TOKEN = Posted("authentication.k8s.io", "v1", "TokenRequest")
_OPTIONS = {"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions"}
_EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


class Subresources:
    """Routes to one method a subresource and verb."""

    def __init__(self, backend: Backend, writer: ObjectWriter, deleter: ObjectDeleter, patcher: ObjectPatcher) -> None:
        self._backend = backend
        self._store = backend.store
        self._writer = writer
        self._deleter = deleter
        self._patcher = patcher
        self._scales = Scales(writer)
        self._routes: dict[tuple[str, str], Callable[[Call], Awaitable[Answer]]] = {
            ("status", "get"): self._get,
            ("status", "update"): self._update,
            ("status", "patch"): self._patch,
            ("finalize", "update"): self._update,
            ("approval", "get"): self._get,
            ("approval", "update"): self._update,
            ("approval", "patch"): self._patch,
            ("scale", "get"): self._get_scale,
            ("scale", "update"): self._scales.update,
            ("scale", "patch"): self._scales.patch,
            ("binding", "create"): self._bind,
            ("eviction", "create"): self._evict,
            ("log", "get"): self._log,
            ("token", "create"): self._token,
            **{(stream, verb): self._no_stream for stream in STREAMS for verb in ("get", "create")},
        }

    async def answer(self, call: Call) -> Answer:
        route = self._routes.get((call.path.subresource, call.verb))
        if route is None:
            raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        if call.path.subresource not in ("log", *STREAMS):
            call.form = media.negotiate(call.request.headers.get("accept", ""))._replace(shape="")
        call.dry_run = check_dry_run(call.request)
        return await route(call)

    def _record(self, call: Call) -> Record:
        record = self._store.get(call.kind.table, call.key)
        if record is None:
            raise not_found(call.kind.group, call.kind.plural, call.name)
        return record

    async def _get(self, call: Call) -> Response:
        return media.answer(200, call.view.object(await self._prepared(call)), call.form)

    async def _get_scale(self, call: Call) -> Response:
        return self._scales.show(call, await self._prepared(call))

    async def _prepared(self, call: Call) -> Record:
        record = self._record(call)
        await codec.prepare(call.kind, (record,))
        return record

    async def _update(self, call: Call) -> Response:
        make, expected = put(call, bodies.decode_object(call))
        outcome = await self._writer.change(call, make, expected=expected, subresource=call.path.subresource)
        return media.answer(200, shown(call, outcome), call.form)

    async def _patch(self, call: Call) -> Response:
        return media.answer(200, shown(call, await self._patcher.patch(call)), call.form)

    # Admission by others

    def _write(self, call: Call, operation: str, posted: Posted) -> Write:
        backend = self._backend
        return Write(
            call.kind,
            operation,
            call.namespace,
            call.name,
            call.path.subresource,
            call.user,
            call.dry_run,
            backend.reader,
            backend.clock(),
            call.warnings,
            call.view.version,
            posted,
        )

    async def _mutated(self, call: Call, operation: str, posted: Posted, obj: Obj) -> Obj:
        """What was posted, as webhooks and policies leave it."""
        dynamic, write = self._backend.hooks.admission, self._write(call, operation, posted)
        if dynamic is None or not dynamic.asked(write):
            return obj
        return await dynamic.mutate(write, obj, None) or obj

    async def _validated(self, call: Call, operation: str, posted: Posted, obj: Obj) -> None:
        dynamic, write = self._backend.hooks.admission, self._write(call, operation, posted)
        if dynamic is not None and dynamic.asked(write):
            await dynamic.validate(write, obj, None)

    async def _admitted(self, call: Call, operation: str, posted: Posted, obj: Obj) -> Obj:
        obj = await self._mutated(call, operation, posted, obj)
        await self._validated(call, operation, posted, obj)
        return obj

    # Binding

    async def _bind(self, call: Call) -> Response:
        binding, warnings = bodies.decode_as(call.request, *_BINDING)
        call.warnings += warnings
        _check_name(metadata.of(binding), call)
        binding = await self._mutated(call, "CREATE", _BINDING, binding)
        node = _target(binding)
        wanted: Obj = metadata.of(binding)
        await self._validated(call, "CREATE", _BINDING, binding)
        for _ in range(_RACES):
            record = self._store.head(call.kind.table, call.key)
            if record is None:
                raise not_found("", "pods", call.name)
            pod = self._assigned(codec.load(call.kind, record), node, wanted)
            if call.dry_run:
                break
            try:
                await self._writer.replace(call.kind, record, pod)
                break
            except RevisionMismatchError:
                continue
        else:
            raise conflict("", "pods/binding", call.name, MODIFIED)
        return Response(201, _SUCCESS)

    def _assigned(self, pod: Obj, node: str, wanted: Obj) -> Obj:
        """The pod with `spec.nodeName` set; 409 where it cannot be bound."""
        meta, spec = pod["metadata"], pod["spec"]
        name: str = meta["name"]
        if wanted.get("uid") and wanted["uid"] != meta["uid"]:
            why = f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {meta['uid']}"
            raise conflict("", "pods/binding", name, why)
        if wanted.get("resourceVersion") and wanted["resourceVersion"] != meta["resourceVersion"]:
            raise conflict("", "pods/binding", name, MODIFIED)
        if "deletionTimestamp" in meta:
            raise conflict("", "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
            raise conflict("", "pods/binding", name, why)
        if spec.get("schedulingGates"):
            raise conflict("", "pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")
        spec["nodeName"] = node
        if wanted.get("annotations"):
            meta["annotations"] = {**(meta.get("annotations") or {}), **wanted["annotations"]}
        self._mark_scheduled(pod)
        return pod

    def _mark_scheduled(self, pod: Obj) -> None:
        status: Obj = pod.setdefault("status", {})
        # The nomination is over: the pod is bound.
        status.pop("nominatedNodeName", None)
        self._set_condition(pod, {"type": "PodScheduled", "status": "True"})

    def _set_condition(self, pod: Obj, wanted: Obj) -> None:
        status: Obj = pod.setdefault("status", {})
        found: list[Obj] = status.get("conditions") or []
        before = next((entry for entry in found if entry.get("type") == wanted["type"]), None)
        if before is not None and before.get("status") == wanted["status"]:
            return
        condition = {"lastProbeTime": None, "lastTransitionTime": metadata.timestamp(self._backend.clock()), **wanted}
        generation = pod["metadata"].get("generation")
        if generation:
            condition["observedGeneration"] = generation
        status["conditions"] = [entry for entry in found if entry is not before] + [condition]

    # Eviction

    async def _evict(self, call: Call) -> Response:
        eviction, warnings = bodies.decode_as(call.request, *_EVICTION)
        call.warnings += warnings
        _check_name(metadata.of(eviction), call)
        call.dry_run = options_from(eviction.get("deleteOptions") or {}, call).dry_run
        eviction = await self._admitted(call, "CREATE", _EVICTION, eviction)
        options: DeleteOptions = options_from(eviction.get("deleteOptions") or {}, call)
        record = self._store.head(call.kind.table, call.key)
        if record is None:
            raise not_found("", "pods", call.name)
        guard = self._backend.hooks.guard_eviction
        if guard is not None:
            await guard(codec.load(call.kind, record), self._write(call, "CREATE", _EVICTION))
        if not call.dry_run:
            await self._announce_eviction(call, options)
        await self._deleter.delete(call, options)
        return Response(201, _SUCCESS)

    async def _announce_eviction(self, call: Call, options: DeleteOptions) -> None:
        """Set the DisruptionTarget condition on the pod before it is deleted."""
        for _ in range(_RACES):
            record = self._store.head(call.kind.table, call.key)
            if record is None or (options.uid and options.uid != record.uid):
                return
            if options.resource_version and options.resource_version != str(record.revision):
                return
            pod = codec.load(call.kind, record)
            if "deletionTimestamp" in pod["metadata"]:
                return
            self._set_condition(pod, _EVICTED)
            try:
                stored = await self._writer.replace(call.kind, record, pod)
            except RevisionMismatchError:
                continue
            if options.resource_version:
                options.resource_version = str(stored.revision)
            return

    # Log and token

    async def _log(self, call: Call) -> Answer:
        pod = codec.load(call.kind, self._record(call))
        _check_container(pod, call.request)
        if self._backend.hooks.pod_log is None:
            return Response(200, b"", "text/plain")
        return await self._backend.hooks.pod_log(pod, call.request)

    async def _no_stream(self, call: Call) -> Response:
        self._record(call)
        await self._admitted(call, "CONNECT", *_stream_options(call))
        raise bad_request(
            f"{call.path.subresource}: simulated nodes run no containers, so there is nothing to connect to"
        )

    async def _token(self, call: Call) -> Response:
        wanted, warnings = bodies.decode_as(call.request, *_TOKEN)
        call.warnings += warnings
        self._record(call)
        wanted = await self._admitted(call, "CREATE", _TOKEN, wanted)
        check_node_token(call.user, call.namespace, call.name, wanted, self._backend.reader)
        if self._backend.hooks.issue_token is None:
            raise no_such_path()
        return media.answer(201, media.encode(self._backend.hooks.issue_token(call.namespace, call.name, wanted)))


_SUCCESS = media.encode(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
)


def _target(binding: Obj) -> str:
    target: Any = binding.get("target") or {}
    errors: list[FieldError] = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append(FieldError(NOT_SUPPORTED, "target.kind", target["kind"], 'supported values: "Node", "<empty>"'))
    if not target.get("name"):
        errors.append(FieldError(REQUIRED, "target.name"))
    if errors:
        raise invalid("", "Binding", binding.get("metadata", {}).get("name", ""), errors)
    return target["name"]


def _stream_options(call: Call) -> tuple[Posted, Obj]:
    """What a stream asks for, as Kubernetes shows it to admission."""
    request, kind = call.request, _OPTIONS[call.path.subresource]
    shown: Obj = {"kind": kind, "apiVersion": "v1"}
    if kind == "PodPortForwardOptions":
        ports = [int(each) for each in request.query.get("ports", ()) if each.isascii() and each.isdigit()]
        return Posted("", "v1", kind), shown | ({"ports": ports} if ports else {})
    shown |= {name: True for name in ("stdin", "stdout", "stderr", "tty") if request.flag(name)}
    if container := request.arg("container"):
        shown["container"] = container
    if kind == "PodExecOptions":
        shown["command"] = list(request.query.get("command", ()))
    return Posted("", "v1", kind), shown


def _check_name(meta: Obj, call: Call) -> None:
    if meta.get("name") and meta["name"] != call.name:
        raise bad_request("name in URL does not match name in the posted object")
    if meta.get("namespace") and meta["namespace"] != call.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _check_container(pod: Obj, request: Request) -> None:
    """400 in Kubernetes' words when the asked container is not the pod's, or none was named and there are several."""
    spec: Obj = pod["spec"]
    name: str = pod["metadata"]["name"]
    main = [entry["name"] for entry in spec.get("containers") or ()]
    known = main + [entry["name"] for entry in spec.get("initContainers") or ()]
    asked = request.arg("container")
    if asked and asked not in known:
        raise bad_request(f"container {asked} is not valid for pod {name}")
    if not asked and len(main) > 1:
        listed = " ".join(main)
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    if not spec.get("nodeName"):
        raise bad_request(f"pod {name} does not have a host assigned")
