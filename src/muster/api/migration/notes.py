"""What a migration has to say about an object."""

from __future__ import annotations

from typing import NamedTuple

from muster.api.validation import fields
from muster.api.validation.fields import Obj


class Note(NamedTuple):
    """One remark. `lost` marks what has no equivalent and is gone from the result.

    `path` is the field of the object it is about, where it is about one that could not be converted.
    """

    about: str
    text: str
    lost: bool = False
    path: str = ""

    def __str__(self) -> str:
        return f"{self.about}: {'no equivalent: ' if self.lost else ''}{self.text}"


def title(obj: Obj) -> str:
    """How an object is called in notes."""
    name = fields.as_text(fields.as_object(obj.get("metadata")).get("name")) or "?"
    return f"{fields.as_text(obj.get('kind')).lower() or 'object'}/{name}"


def namespace(obj: Obj) -> str:
    return fields.as_text(fields.as_object(obj.get("metadata")).get("namespace"))


def name(obj: Obj) -> str:
    return fields.as_text(fields.as_object(obj.get("metadata")).get("name"))
