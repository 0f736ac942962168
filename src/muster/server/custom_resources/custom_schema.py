"""The schema of a custom kind in one version, as the verbs use it: reading, pruning, defaulting, ownership.

Metadata is read as that of every object. Everything else keeps the values that were written; what is wrong with them is
for `validation` to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from muster.api.errors import ApiError, bad_request
from muster.server import codec, fields
from muster.server.apply.rules import Granular
from muster.server.custom_resources.cel_rules import RuleNode, rules_of
from muster.server.custom_resources.defaulting import set_defaults
from muster.server.custom_resources.ownership import object_rule
from muster.server.custom_resources.pruning import prune, prune_nulls
from muster.server.custom_resources.structural import META_FIELDS, Schema, Structural
from muster.server.schema import message

Obj = dict[str, Any]

_HEAD = "meta.v1.PartialObjectMetadata"


class CustomSchema:
    """A structural schema of one kind and version."""

    message = None

    def __init__(self, kind: str, version: str, source: Schema) -> None:
        self._kind = kind
        self._version = version
        self.source = source

    @cached_property
    def structural(self) -> Structural:
        """The tree, built when it is first asked for: large definitions have thousands of fields."""
        return Structural(self.source)

    @cached_property
    def rules(self) -> RuleNode | None:
        """The rules that the schema states itself."""
        return rules_of(self.structural)

    @cached_property
    def _rule(self) -> Granular:
        return object_rule(self.structural)

    @property
    def rule(self) -> Granular:
        return self._rule

    def decode(self, obj: Obj, mode: str, repeated: Iterable[str], *, patched: bool) -> tuple[Obj, list[str]]:
        try:
            result = codec.copy(obj)
            unknown = self._read_metadata(result, patched)
            unknown += prune(result, self.structural)
            prune_nulls(result, self.structural)
            set_defaults(result, self.structural)
        except RecursionError:
            raise bad_request("the object provided is unrecognized: exceeded max depth") from None
        warnings = fields.strictness(unknown, repeated)
        if mode == fields.STRICT and warnings:
            raise fields.refused(self._kind, self._version, fields.not_strict(warnings), patched=patched)
        return result, [] if mode == fields.IGNORE else warnings

    def _read_metadata(self, obj: Obj, patched: bool) -> list[str]:
        """Put the metadata into its usual form; the fields that are none of it."""
        head = {name: obj[name] for name in META_FIELDS if name in obj}
        known = message(_HEAD)
        try:
            decoded, warnings = fields.decode(head, known, fields.WARN)
        except ApiError as wrong:
            words = wrong.message.partition(": ")[2]
            raise fields.refused(self._kind, self._version, words, patched=patched) from None
        obj["metadata"] = decoded["metadata"]
        return [warning.removeprefix('unknown field "').removesuffix('"') for warning in warnings]

    def current(self, obj: Obj) -> None:
        """Make an object what it is under this schema, in place: one that was stored, or that admission changed."""
        prune(obj, self.structural)
        prune_nulls(obj, self.structural)
        set_defaults(obj, self.structural)

    def configuration(self, obj: Obj) -> Obj:
        """An applied configuration; 400 where it has a field that the schema does not declare."""
        result = codec.copy(obj)
        unknown = prune(result, self.structural)
        if type(result.get("metadata")) is dict:
            unknown += fields.unknown_fields({"metadata": result["metadata"]}, message(_HEAD))
        if unknown:
            raise fields.undeclared(unknown)
        if type(result.get("metadata")) is dict:
            head = {"metadata": result["metadata"]}
            result["metadata"] = fields.configuration(head, message(_HEAD))["metadata"]
        return result

    def empty(self) -> Obj:
        return {"metadata": {}}
