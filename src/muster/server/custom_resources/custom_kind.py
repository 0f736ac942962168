"""From a definition to the kinds that are served: one `Kind` for each served version."""

from __future__ import annotations

from functools import partial
from typing import Any

from muster.api.errors import INVALID, ApiError, FieldError
from muster.server.admission import admitters_for
from muster.server.custom_resources import cel_rules, printer_columns
from muster.server.custom_resources.conversion import Post, WebhookConverter
from muster.server.custom_resources.custom_schema import CustomSchema
from muster.server.custom_resources.json_path import simple_fields
from muster.server.custom_resources.list_types import validate_embedded, validate_lists
from muster.server.custom_resources.structural import META_FIELDS
from muster.server.custom_resources.validation import validate
from muster.server.registry import preference
from muster.server.resources.columns import at
from muster.server.resources.kind import Definition, Kind, Obj, ScalePaths, Write
from muster.server.resources.rules.status import keep_status

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_GREATEST = 2**31 - 1


def kinds_of(definition: Obj, post: Post) -> tuple[Kind, ...]:
    """The kinds of an established definition, the preferred version first."""
    versions: list[Obj] = definition["spec"]["versions"]
    stored: str = next(version["name"] for version in versions if version.get("storage"))
    served = sorted((each for each in versions if each.get("served")), key=lambda each: preference(each["name"]))
    webhook = definition["spec"]["conversion"]["strategy"] == "Webhook"
    converter = WebhookConverter(definition, post) if webhook else None
    return tuple(_Version(definition, version, stored, converter).kind() for version in served)


class _Version:
    """One served version of a definition, on its way to a `Kind`."""

    def __init__(self, definition: Obj, version: Obj, stored: str, converter: WebhookConverter | None) -> None:
        self.converter = converter
        self.spec: Obj = definition["spec"]
        self.names: Obj = definition["status"]["acceptedNames"]
        self.version = version
        self.stored = stored
        self.terminating = "deletionTimestamp" in definition["metadata"]
        self.subresources: Obj = version.get("subresources") or {}
        self.schema = CustomSchema(self.names["kind"], version["name"], version["schema"]["openAPIV3Schema"])
        self.scale = _scale_paths(self.subresources.get("scale"))

    def kind(self) -> Kind:
        group, name, names = self.spec["group"], self.version["name"], self.names
        namespaced = self.spec["scope"] == "Namespaced"
        return Kind(
            group,
            (name,),
            names["kind"],
            names["plural"],
            namespaced,
            singular=names.get("singular", ""),
            list_kind=names.get("listKind", ""),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(each for each in ("status", "scale") if self.subresources.get(each) is not None),
            verbs=_VERBS,
            columns=printer_columns.columns(self.version),
            selectable=printer_columns.selectable(self.version),
            default=self.schema.current,
            prepare=keep_status if self.subresources.get("status") is not None else None,
            validate=self._validate,
            admit=(self._admit, *admitters_for(group, names["plural"], namespaced)),
            generation=True,
            unconditional_update=False,
            definition=Definition(
                self.schema,
                self.stored,
                partial(_read, self.schema, f"{group}/{name}"),
                self.version["schema"]["openAPIV3Schema"],
                self.scale,
                self.converter,
            ),
        )

    async def _admit(self, write: Write, new: Obj, old: Obj | None) -> None:
        if self.terminating and write.operation == "CREATE":
            why = "create not allowed while custom resource definition is terminating"
            raise ApiError(405, "MethodNotAllowed", why, {"group": self.spec["group"], "kind": self.names["plural"]})
        if self.version.get("deprecated"):
            plain = f"{self.spec['group']}/{self.version['name']} {self.names['kind']} is deprecated"
            write.warnings.append(self.version.get("deprecationWarning") or plain)

    def _validate(self, new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
        """A write of the status is judged by the status alone: what else is stored was judged before."""
        source: Obj = self.schema.source
        before = old if old is not None else {}
        if subresource == "status":
            status = (source.get("properties") or {}).get("status")
            errors: list[FieldError] = []
            if "status" in new and status is not None:
                errors += validate(new["status"], status, before.get("status"), "status")
            errors += self._check_scale(new, status_only=True)
            return errors + self._check_rules(new, old, errors)
        errors = validate(_without_head(new, source), source, _without_head(before, source))
        errors += self._check_scale(new)
        structural = self.schema.structural
        errors += validate_embedded(new, structural)
        if old is None or not validate_lists(old, structural):
            errors += validate_lists(new, structural)
        return errors + self._check_rules(new, old, errors)

    def _check_rules(self, new: Obj, old: Obj | None, found: list[FieldError]) -> list[FieldError]:
        return cel_rules.validate(self.schema.rules, new, old, found) if self.schema.rules is not None else []

    def _check_scale(self, obj: Obj, status_only: bool = False) -> list[FieldError]:
        """Replica counts that a scale shows must be such."""
        if self.scale is None:
            return []
        errors: list[FieldError] = []
        paths = (self.scale.status_replicas,) if status_only else (self.scale.spec_replicas, self.scale.status_replicas)
        for path in paths:
            value: Any = at(obj, *path)
            where = "." + ".".join(path)
            if value is None:
                continue
            if type(value) is not int:
                why = f"{where} accessor error: {value} is of the type {type(value).__name__}, expected int64"
                errors.append(FieldError(INVALID, where, 0, why))
            elif value < 0:
                errors.append(FieldError(INVALID, where, value, "should be a non-negative integer"))
            elif value > _GREATEST:
                errors.append(FieldError(INVALID, where, value, f"should be less than or equal to {_GREATEST}"))
        return errors


def _without_head(obj: Obj, schema: Obj) -> Obj:
    """The object as the schema sees it: of the metadata only what it restricts, the name."""
    named = (schema.get("properties") or {}).get("metadata")
    return obj if named or not obj else {name: value for name, value in obj.items() if name not in META_FIELDS}


def _read(schema: CustomSchema, api_version: str, stored: Obj) -> Obj:
    stored["apiVersion"] = api_version
    schema.current(stored)
    return stored


def _scale_paths(scale: Obj | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(
        simple_fields(scale["specReplicasPath"]) or (),
        simple_fields(scale["statusReplicasPath"]) or (),
        simple_fields(scale.get("labelSelectorPath") or "") or (),
    )
