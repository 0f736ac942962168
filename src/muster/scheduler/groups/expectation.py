"""Which members of a PodGroup do not exist yet and will come, by the annotation of `muster.api.expected_members`.

An annotation that cannot be read expects nobody: the group then waits for its members as every other group does, and
what is wrong is said on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from muster.api import groups as api
from muster.api.expected_members import COMPLETED, EXPECTED_MEMBERS, ExpectedMembers, MalformedExpectation, decode


@dataclass(frozen=True, slots=True)
class Expectation:
    """The members of a group by template, those included that exist."""

    templates: tuple[ExpectedMembers, ...] = ()
    later: tuple[ExpectedMembers, ...] = ()  # when others are completed: nothing is held for them
    fault: str = ""  # why the annotation cannot be read
    total: int = 0


NOTHING_EXPECTED = Expectation()


def expectation_of(obj: api.PodGroup | api.CompositePodGroup) -> Expectation:
    """What a group says about members to come."""
    text = (obj.metadata.annotations or {}).get(EXPECTED_MEMBERS)
    return _read(text) if text is not None and isinstance(obj, api.PodGroup) else NOTHING_EXPECTED


@lru_cache(maxsize=256)
def _read(text: str) -> Expectation:
    try:
        templates = decode(text)
    except MalformedExpectation as malformed:
        return Expectation(fault=str(malformed))
    held = tuple(template for template in templates if template.after != COMPLETED)
    later = tuple(template for template in templates if template.after == COMPLETED)
    return Expectation(held, later, total=sum(template.count for template in held))
