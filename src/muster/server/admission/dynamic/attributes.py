"""One write as webhooks and policies see it: in the version that they ask for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from muster.server import codec, fields
from muster.server.apply.object_schema import ObjectSchema, built_in
from muster.server.request import User
from muster.server.resources.kind import Kind, Obj, Write

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions", "CONNECT": ""}


@dataclass(slots=True)
class Attributes:
    """A write on its way. Objects are in the storage version; `new` is None for a deletion, `old` for a creation.

    A request to a subresource may be about an object of another kind, which has one version (`Write.posted`).
    """

    write: Write
    new: Obj | None
    old: Obj | None
    _shown: dict[str, tuple[Obj | None, Obj | None]] = field(
        default_factory=dict[str, tuple[Obj | None, Obj | None]], repr=False
    )

    @property
    def kind(self) -> Kind:
        return self.write.kind

    @property
    def version(self) -> str:
        return self.write.version or self.kind.stored_as

    @property
    def resource(self) -> str:
        """The resource as rules name it: pods, or pods/status."""
        subresource = self.write.subresource
        return f"{self.kind.plural}/{subresource}" if subresource else self.kind.plural

    def objects(self, version: str) -> tuple[Obj | None, Obj | None]:
        """The new and the old object in a version. Not to be changed."""
        found = self._shown.get(version)
        if found is None:
            found = self._shown[version] = (self._in_version(self.new, version), self._in_version(self.old, version))
        return found

    def replace(self, changed: Obj) -> None:
        """Another new object, in the storage version."""
        self.new = changed
        self._shown.clear()

    def _in_version(self, obj: Obj | None, version: str) -> Obj | None:
        if obj is None:
            return None
        copy = codec.copy(obj)
        return copy if self.write.posted is not None else codec.to_version(self.kind, version, copy)

    def schema(self, version: str) -> ObjectSchema:
        """The fields of what is shown in a version."""
        posted = self.write.posted
        return built_in(*posted) if posted is not None else codec.View(self.kind, version).schema

    def take(self, version: str, changed: Obj) -> None:
        """Take over an object that was changed in a version: in the form Go would write it, in the storage version."""
        canonical, _ = self.schema(version).decode(changed, fields.IGNORE, (), patched=True)
        self.replace(canonical if self.write.posted is not None else codec.to_storage(self.kind, version, canonical))

    def request(self, version: str) -> Obj:
        """The fields of an AdmissionRequest, without uid and objects."""
        write, kind = self.write, self.kind
        options = _OPTIONS[write.operation]
        posted = None if write.posted is None else write.posted._asdict()
        shown: Obj = {
            "kind": posted or _gvk(kind, version),
            "resource": _gvr(kind, version),
            "requestKind": posted or _gvk(kind, self.version),
            "requestResource": _gvr(kind, self.version),
            "name": write.name,
            "operation": write.operation,
            "userInfo": user_info(write.user),
            "dryRun": write.dry_run,
            "options": None,
        }
        if options:
            dry_run = {"dryRun": ["All"]} if write.dry_run else {}
            shown["options"] = {"kind": options, "apiVersion": "meta.k8s.io/v1", **dry_run}
        if self.namespace:
            shown["namespace"] = self.namespace
        if write.subresource:
            shown["subResource"] = shown["requestSubResource"] = write.subresource
        return shown

    @property
    def namespace(self) -> str:
        """The namespace that the write is in; a namespace is in itself."""
        if self.is_namespace:
            return self.write.name
        return self.write.namespace

    @property
    def is_namespace(self) -> bool:
        return self.kind.plural == "namespaces" and not self.kind.group

    def namespace_object(self) -> Obj | None:
        """The namespace itself; None for what is in none."""
        if self.is_namespace:
            return self.new if self.new is not None else self.old
        if not self.write.namespace:
            return None
        return self.write.reader.get("namespaces", "", "", self.write.namespace)


def user_info(user: User) -> Obj:
    shown: dict[str, Any] = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        shown["uid"] = user.uid
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return shown


def _gvk(kind: Kind, version: str) -> Obj:
    return {"group": kind.group, "version": version, "kind": kind.kind}


def _gvr(kind: Kind, version: str) -> Obj:
    return {"group": kind.group, "version": version, "resource": kind.plural}
