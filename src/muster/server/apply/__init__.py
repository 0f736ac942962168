"""Server-side apply: a configuration is merged into the live object, and owners of the same fields must agree.

`merge` is one apply. `managed.update` keeps the owners right on every other write.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.errors import INVALID, REQUIRED, ApiError, FieldError, bad_request, invalid
from muster.server.apply import fieldsets, managed, typed
from muster.server.apply.fieldsets import FieldSet
from muster.server.apply.managed import APPLY, UPDATE, Identity, Managers
from muster.server.apply.object_schema import ObjectSchema

__all__ = ["check_options", "managed", "merge"]

Obj = dict[str, Any]

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL = "kubectl"


class _Conflicts(Exception):
    def __init__(self, found: dict[Identity, FieldSet]) -> None:
        super().__init__()
        self.found = found


def check_options(manager: str, force: bool, *, is_apply: bool) -> None:
    """422 where the query parameters of a patch do not fit its kind."""
    errors: list[FieldError] = []
    if is_apply and not manager:
        errors.append(FieldError(REQUIRED, "fieldManager", detail="is required for apply patch"))
    if force and not is_apply:
        errors.append(FieldError("FieldValueForbidden", "force", detail="may not be specified for non-apply patch"))
    if len(manager) > managed.MAX_MANAGER:
        errors.append(FieldError(INVALID, "fieldManager", manager, "may not be more than 128 bytes"))
    if errors:
        raise invalid("meta.k8s.io", "PatchOptions", "", errors)


def merge(
    live: Obj | None,
    config: Any,
    schema: ObjectSchema,
    *,
    manager: str,
    api_version: str,
    now: str,
    force: bool = False,
    subresource: str = "",
) -> Obj:
    """The object after an apply, with its managedFields; `live` is None where there is none yet.

    The result still has to pass defaulting and validation like any other write. Raises ApiError 409 with one cause a
    field where another manager owns it and `force` is not set, and 400 where the configuration is not one.
    """
    _check(config)
    attempt = _Apply(live, schema.configuration(config), schema, api_version, now, subresource)
    identity = (manager, APPLY, "", subresource)
    try:
        result = attempt.run(identity, force)
    except typed.Repeated as wrong:
        raise bad_request(f"failed to create typed patch object: {wrong}") from None
    except _Conflicts as conflicts:
        if manager != _KUBECTL or live is None:
            raise _refused(conflicts.found) from None
        left = attempt.not_from_last_applied(conflicts.found)
        if left:
            raise _refused(left) from None
        result = attempt.run(identity, force=True)
    if manager == _KUBECTL:
        _renew_last_applied(result, config)
    return result


def _check(config: Any) -> None:
    if type(config) is not dict:
        raise bad_request("error decoding patch: an apply configuration must be an object")
    metadata = config.get("metadata")
    if metadata is not None and type(metadata) is not dict:
        raise bad_request("error decoding patch: metadata must be an object")
    if metadata and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")


class _Apply:
    """One apply of a configuration to an object."""

    def __init__(
        self,
        live: Obj | None,
        config: Obj,
        schema: ObjectSchema,
        api_version: str,
        now: str,
        subresource: str,
    ) -> None:
        self.created = live is None
        self.live = live if live is not None else {}
        self.config = config
        self.rule = schema.rule
        self.schema = schema
        self.api_version = api_version
        self.now = now
        self.subresource = subresource

    def run(self, identity: Identity, force: bool) -> Obj:
        managers = self._managers()
        last = managers.fields(identity)
        owned = self._owned(self.config)
        managers.put(identity, owned, self.api_version, self.now)
        merged = self._pruned(typed.merge(self.live, self.config, self.rule), managers, last)
        self._settle(merged, managers, identity, force)
        metadata = {key: value for key, value in (merged.get("metadata") or {}).items() if key != "managedFields"}
        return merged | {"metadata": metadata | {"managedFields": managers.entries()}}

    def _comparable(self, obj: Obj) -> Obj:
        return managed.comparable(obj, self.subresource)

    def _owned(self, config: Obj) -> FieldSet:
        found = typed.owned(self._comparable(config), self.rule)
        if not found.get("f:metadata"):
            found.pop("f:metadata", None)
        return found

    def _before(self) -> Obj:
        return self.schema.empty() if self.created else self.live

    def _managers(self) -> Managers:
        """The owners so far. An object that nobody applied to yet belongs to all its earlier writers together."""
        managers = Managers(managed.entries_of(self.live))
        if not managers and not self.created:
            identity = (managed.BEFORE_FIRST_APPLY, UPDATE, self.api_version, "")
            nothing = self._comparable(self.schema.empty())
            existing = typed.compare(nothing, self._comparable(self.live), self.rule)
            managers.put(identity, fieldsets.union(existing.added, existing.modified), self.api_version, self.now)
        return managers

    def _pruned(self, merged: Obj, managers: Managers, last: FieldSet) -> Obj:
        """Without what this manager applied last time, does not apply now, and nobody else owns."""
        if not last:
            return merged
        keep: FieldSet = {}
        for identity in managers:
            keep = fieldsets.union(keep, managers.fields(identity))
        return typed.prune(merged, self.rule, last, keep) or {}

    def _settle(self, merged: Obj, managers: Managers, identity: Identity, force: bool) -> None:
        """Takes the changed fields from their other owners, or raises when they may not be taken."""
        changes = typed.compare(self._comparable(self._before()), self._comparable(merged), self.rule)
        taken = fieldsets.union(changes.added, changes.modified)
        others = [other for other in managers if other != identity]
        conflicts = {other: fieldsets.intersection(managers.fields(other), taken) for other in others}
        conflicts = {other: fought for other, fought in conflicts.items() if fought}
        if conflicts and not force:
            raise _Conflicts(conflicts)
        for other in others:
            managers.take(other, fieldsets.union(conflicts.get(other, {}), changes.removed))

    def not_from_last_applied(self, conflicts: dict[Identity, FieldSet]) -> dict[Identity, FieldSet]:
        """The conflicts that remain when kubectl takes over what it had applied on the client's side.

        A field is kubectl's own where the last-applied annotation has it and nobody changed it since.
        """
        annotations = (self.live.get("metadata") or {}).get("annotations") or {}
        try:
            before = msgspec.json.decode(annotations.get(_LAST_APPLIED) or b"")
            if not isinstance(before, dict) or before.get("apiVersion") != self.api_version:
                return conflicts
            before = self.schema.configuration(before)
            untouched = self._owned(before)
        except (msgspec.MsgspecError, ApiError, typed.Repeated):
            return conflicts
        mine = self._comparable(before)
        changes = typed.compare(mine, self._comparable(self.live), self.rule)
        for changed in changes:
            untouched = fieldsets.difference(untouched, changed)
        left = {other: fieldsets.difference(fought, untouched) for other, fought in conflicts.items()}
        return {other: fought for other, fought in left.items() if fought}


def _renew_last_applied(result: Obj, config: Obj) -> None:
    """Keeps the annotation of client-side apply true, so that a user can go back to it."""
    metadata: Obj = result["metadata"]
    annotations: Obj = metadata.get("annotations") or {}
    if not annotations.get(_LAST_APPLIED):
        return
    own = dict(config.get("metadata") or {})
    if own.get("annotations"):
        own["annotations"] = {key: value for key, value in own["annotations"].items() if key != _LAST_APPLIED}
    text = msgspec.json.encode(config | {"metadata": own}).decode() + "\n"
    metadata["annotations"] = annotations | {_LAST_APPLIED: text}


def _refused(conflicts: dict[Identity, FieldSet]) -> ApiError:
    causes: list[dict[str, str]] = []
    sections: list[str] = []
    for identity in sorted(conflicts):
        who = _describe(identity)
        paths = list(fieldsets.paths(conflicts[identity]))
        causes += [
            {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path} for path in paths
        ]
        sections.append("\n".join([f"conflicts with {who}:", *(f"- {path}" for path in paths)]))
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        text = f"Apply failed with {len(causes)} conflicts: " + "\n".join(sections)
    return ApiError(409, "Conflict", text, {"causes": causes})


def _describe(identity: Identity) -> str:
    name, operation, version, subresource = identity
    text = f'"{name}"' + (f' with subresource "{subresource}"' if subresource else "")
    return f"{text} using {version}" if operation == UPDATE else text
