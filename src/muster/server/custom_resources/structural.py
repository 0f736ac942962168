"""A structural schema: the tree that says which fields a custom resource has.

The tree holds what decides the form of objects (properties, items, defaults, `x-kubernetes-*`). What only restricts
values (`pattern`, `oneOf` ...) stays in `source`, the schema as it was written, for `validation`. Nothing here changes
after it is built.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

META_FIELDS = ("apiVersion", "kind", "metadata")


class Structural:
    """One node of a structural schema."""

    __slots__ = (
        "additional",
        "default",
        "embedded",
        "has_default",
        "has_defaults",
        "int_or_string",
        "items",
        "list_keys",
        "list_type",
        "map_type",
        "nullable",
        "preserve",
        "properties",
        "source",
        "type",
    )

    def __init__(self, source: Schema) -> None:
        self.source = source
        self.type: str = source.get("type") or ""
        self.nullable = bool(source.get("nullable"))
        self.default: Any = source.get("default")
        self.has_default = source.get("default") is not None
        self.preserve = bool(source.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(source.get("x-kubernetes-embedded-resource"))
        self.int_or_string = bool(source.get("x-kubernetes-int-or-string"))
        self.list_type: str = source.get("x-kubernetes-list-type") or ""
        self.list_keys: tuple[str, ...] = tuple(source.get("x-kubernetes-list-map-keys") or ())
        self.map_type: str = source.get("x-kubernetes-map-type") or ""
        self.properties = {name: Structural(each) for name, each in (source.get("properties") or {}).items()}
        items: Any = source.get("items")
        self.items = Structural(items) if isinstance(items, dict) else None
        additional: Any = source.get("additionalProperties")
        # `additionalProperties: true` lets any member in; of objects among them nothing is known, and so nothing kept.
        self.additional = Structural(additional) if isinstance(additional, dict) else _ANY if additional else None
        below = (*self.properties.values(), self.items, self.additional)
        self.has_defaults = any(each is not None and (each.has_default or each.has_defaults) for each in below)

    def field(self, name: str) -> Structural | None:
        """The schema of one member of an object."""
        return self.properties.get(name) or self.additional


_ANY = Structural({"nullable": True})
