"""One served kind, declared as a value: its names, its versions, its lifecycle hooks, how it prints.

Adding a kind to the server is one `Kind` in the registry (`muster.server.served_kinds`). The hooks work on plain
JSON dicts in the storage version and change them in place:

    default    fill in what was left out, before anything else
    prepare    put back what clients may not set or change here (status on the main resource, spec on /status ...)
    admit      what depends on other objects (priority, namespace, finalizers); async
    validate   the field errors of the new object

`old` is None on a create; `subresource` is "" for the main resource.

Order on a write: default, prepare, admit, validate, store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from muster.api.errors import FieldError
from muster.server.apply.object_schema import ObjectSchema
from muster.server.request import User
from muster.server.store.records import Record

Obj = dict[str, Any]


class Reader(Protocol):
    """What admission may ask of the server while it handles a write."""

    def get(self, plural: str, group: str, namespace: str, name: str) -> Obj | None: ...

    def list(self, plural: str, group: str, namespace: str = "") -> list[Obj]: ...


class Posted(NamedTuple):
    """What a request to a subresource is about instead of the object itself: a Binding, an Eviction, a Scale."""

    group: str
    version: str
    kind: str


@dataclass(frozen=True, slots=True)
class AdmissionForm:
    """How a write to a subresource is shown to webhooks and policies, and how what they change gets back."""

    posted: Posted
    show: Callable[[Obj], Obj]  # of the object, in the storage version
    take: Callable[[Obj, Obj], Obj]  # (object, what became of the shown form) -> object


@dataclass(slots=True)
class Write:
    """One write on its way to the store, as admission sees it."""

    kind: Kind
    operation: str  # CREATE, UPDATE, DELETE, CONNECT
    namespace: str
    name: str
    subresource: str
    user: User
    dry_run: bool
    reader: Reader
    now: float  # seconds since the epoch
    warnings: list[str] = field(default_factory=list[str])
    version: str = ""  # of the request; the objects are in the storage version
    posted: Posted | None = None  # then webhooks and policies see such objects


Defaulter = Callable[[Obj], None]
Preparer = Callable[[Obj, Obj | None, str], None]  # (new, old, subresource)
Validator = Callable[[Obj, Obj | None, str], list[FieldError]]  # (new, old, subresource)
Admitter = Callable[[Write, Obj, Obj | None], Awaitable[None]]  # raises ApiError to refuse


class RelatedCounts(Protocol):
    """What a table cell may ask beyond its own object."""

    now: float

    def members(self, namespace: str, group: str) -> tuple[int, int]:
        """(bound, known) pods of a pod group."""
        ...

    def children(self, namespace: str, composite: str) -> int:
        """Groups and composites that name this composite as their parent."""
        ...


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a server-printed table. `cell` reads the storage-version object."""

    name: str
    cell: Callable[[Obj, RelatedCounts], Any]
    type: str = "string"
    format: str = ""
    wide: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class AlternateVersion:
    """How a kind shows objects that another kind stores (events in two groups)."""

    table: str  # the table of the kind that stores them
    api_version: str  # what that kind calls them
    to_storage: Callable[[Obj], Obj]
    to_version: Callable[[Obj], Obj]


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a custom kind keeps what its scale shows: the names of the fields on the way."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


class Converter(Protocol):
    """Converts the objects of a custom kind between versions, by asking somebody else."""

    async def prepare(self, records: Iterable[Record], version: str) -> None:
        """Bring what `found` will be asked for."""
        ...

    def found(self, record: Record, version: str) -> Obj | None:
        """A prepared object in a version; None where it was not prepared."""
        ...

    async def convert(self, objects: list[Obj], version: str) -> list[Obj]:
        """Objects in another version."""
        ...


@dataclass(frozen=True, slots=True)
class Definition:
    """What a kind has because a CustomResourceDefinition defines it. Each of its versions is a `Kind` of its own.

    Stored objects say which version they were written in. `read` makes of one the object in this kind's version:
    converted, without fields that the schema does not have any more, with the defaults that it has now.
    """

    schema: ObjectSchema
    storage_version: str
    read: Callable[[Obj], Obj]
    openapi: Obj  # the schema as OpenAPI documents show it
    scale: ScalePaths | None = None
    converter: Converter | None = None  # None: versions differ in their names only


Answer = Callable[[Write, Obj], Awaitable[Obj]]  # a review: asked by create, answered, never stored


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that the server serves."""

    group: str
    versions: tuple[str, ...]  # served, in order of preference
    kind: str
    plural: str
    namespaced: bool
    singular: str = ""
    storage_version: str = ""  # default: the first of `versions`
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()  # "status", "scale", "binding", "eviction", "log", "token"
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    storage_hash: str = ""
    columns: tuple[Column, ...] = ()
    selectable: Mapping[str, Callable[[Obj], str]] = field(default_factory=dict[str, Callable[[Obj], str]])
    default: Defaulter | None = None
    prepare: Preparer | None = None
    validate: Validator | None = None
    admit: tuple[Admitter, ...] = ()
    convert: Callable[[Obj, str], Obj] | None = None  # (object in any version, target version) -> object
    name_rule: str = "subdomain"  # subdomain | label | path
    generation: bool = False  # metadata.generation counts spec changes
    unconditional_update: bool = True
    create_on_update: bool = False
    graceful: bool = False  # pods: deletionTimestamp first, gone when the kubelet says so
    alike: tuple[str, ...] = ()  # versions whose fields equal the storage version's: same bytes, other apiVersion
    alternate: AlternateVersion | None = None
    answer: Answer | None = None
    returns_deleted: bool = False  # a delete that removes at once answers with the object, not with a Status
    serving: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])  # verbs of a subresource
    list_kind: str = ""  # default: the kind with "List"
    deletion_finalizer: str = ""  # what a delete puts on the object, for a controller to take off
    definition: Definition | None = None

    @property
    def stored_as(self) -> str:
        return self.storage_version or self.versions[0]

    @property
    def table(self) -> str:
        """The name of its table in the store."""
        if self.alternate is not None:
            return self.alternate.table
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def listed_as(self) -> str:
        return self.list_kind or f"{self.kind}List"

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version
