"""What the annotations of a workload ask for, and remarks about those that mean nothing.

All keys have the prefix `scheduling.muster.dev/`; `docs/workloads.md` lists them. A value that means nothing counts as
absent, because an object that is stored cannot be refused any more, and is said in an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.api.expected_members import EXPECTED_MEMBERS
from muster.api.job_gangs import GANG_ANNOTATION, NO_GANG, WHOLE_GANG
from muster.api.kueue import ALLOWED, NEVER, PREEMPTION
from muster.api.membership import KUEUE, PREFIX
from muster.api.types import EXPECTED_DURATION
from muster.api.validation import formats
from muster.controllers.workloads.tree import JSON, Remark, template_annotations

GANG_LEVEL = f"{PREFIX}gang-level"
TOPOLOGY = f"{PREFIX}topology"
DISRUPTION = f"{PREFIX}disruption"
SET, REPLICA, ROLE = "set", "replica", "role"
ALL, SINGLE = "all", "single"

BAD_ANNOTATION = "BadAnnotation"

KUEUE_QUEUE = f"{KUEUE}queue-name"
KUEUE_PODSET = f"{KUEUE}podset-"
KUEUE_REQUIRED = f"{KUEUE}podset-required-topology"
KUEUE_SLICE = f"{KUEUE}podset-slice-required-topology"
KUEUE_SLICE_SIZE = f"{KUEUE}podset-slice-size"

_KNOWN = (GANG_ANNOTATION, GANG_LEVEL, TOPOLOGY, DISRUPTION, PREEMPTION, EXPECTED_DURATION, EXPECTED_MEMBERS)


@dataclass(slots=True)
class Wishes:
    """The annotations of one owner, read once; remarks are collected on the way."""

    annotations: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    remarks: list[Remark] = field(default_factory=list[Remark])
    kueue_assigns: bool = False  # Kueue admits this workload and chooses its nodes

    @staticmethod
    def of(owner: JSON, levels: tuple[str, ...] = (), parts: tuple[str, ...] = ()) -> Wishes:
        """`levels`: what `gang-level` may be; `parts`: what a topology can be given for by name."""
        meta: JSON = owner.get("metadata") or {}
        made = Wishes(meta.get("annotations") or {}, meta.get("labels") or {})
        made.kueue_assigns = made.in_queue and _asks_kueue(owner.get("spec"))
        for key, value in sorted(made.annotations.items()):
            if key.startswith(PREFIX):
                made._check(key, value, levels, parts)
        return made

    def _check(self, key: str, value: str, levels: tuple[str, ...], parts: tuple[str, ...]) -> None:
        if key.startswith(f"{TOPOLOGY}."):
            part = key.removeprefix(f"{TOPOLOGY}.")
            if part not in parts:
                self._bad(key, f"there is no part {part!r}; there are: {', '.join(parts) or 'none'}")
        elif key not in _KNOWN:
            self._bad(key, f"means nothing here; known are {', '.join(each for each in _KNOWN)} and {TOPOLOGY}.<part>")
        elif key == GANG_LEVEL and value not in levels:
            self._bad(key, f"must be one of {', '.join(levels)}" if levels else "has no meaning for this kind")
        elif key == DISRUPTION and value not in (ALL, SINGLE):
            self._bad(key, f"must be {ALL} or {SINGLE}")
        elif key == PREEMPTION and value not in (ALLOWED, NEVER):
            self._bad(key, f"must be {ALLOWED} or {NEVER}")

    def _bad(self, key: str, why: str) -> None:
        self.remarks.append(Remark(BAD_ANNOTATION, f"annotation {key}: {self.annotations.get(key, '')!r} {why}"))

    # --- the values --------------------------------------------------------------------------------

    def level(self, default: str, levels: tuple[str, ...]) -> str:
        value = self.annotations.get(GANG_LEVEL, default)
        return value if value in levels else default

    @property
    def no_gang(self) -> bool:
        return self.annotations.get(GANG_ANNOTATION) == NO_GANG

    def gang(self, template: JSON | None, whole: int) -> int | str | None:
        """How many of `whole` pods must start together, by the template's annotation or the owner's; "" if none says.

        None: one by one.
        """
        for found in (template_annotations(template), self.annotations):
            if (value := found.get(GANG_ANNOTATION)) is not None:
                return self._gang_value(str(value), whole)
        return ""

    def _gang_value(self, value: str, whole: int) -> int | str | None:
        if value == NO_GANG:
            return None
        if value == WHOLE_GANG:
            return whole
        if value.isascii() and value.isdigit() and 0 < int(value) <= max(1, whole):
            return int(value)
        text = f"must be {NO_GANG}, {WHOLE_GANG} or a number of pods from 1 to {max(1, whole)}"
        self.remarks.append(Remark(BAD_ANNOTATION, f"annotation {GANG_ANNOTATION}: {value!r} {text}"))
        return ""

    def topology(self, part: str = "") -> str:
        """The key for the whole, or for a part of it."""
        return self._key(self.annotations, f"{TOPOLOGY}.{part}" if part else TOPOLOGY)

    def topology_in(self, *metadata: Any) -> str:
        """The key that the first of these annotations names (of a Job template, of a pod template)."""
        for each in metadata:
            if key := self._key(each or {}, TOPOLOGY):
                return key
        return ""

    def _key(self, annotations: Mapping[str, str], name: str) -> str:
        value = annotations.get(name)
        if value is None:
            return ""
        if self.kueue_assigns and name.startswith(PREFIX):
            text = f"annotation {name}: Kueue assigns the topology of this workload, so it is not asked for again"
            self.remarks.append(Remark("KueueAssignsTopology", text))
            return ""
        complaints = formats.qualified_name(str(value))
        if not complaints:
            return str(value)
        self.remarks.append(Remark(BAD_ANNOTATION, f"annotation {name}: {value!r} is no label key: {complaints[0]}"))
        return ""

    def whole(self, default: bool) -> bool:
        """Whether a disruption of a part is one of everything."""
        value = self.annotations.get(DISRUPTION)
        return value == ALL if value in (ALL, SINGLE) else default

    # --- Kueue -------------------------------------------------------------------------------------

    @property
    def in_queue(self) -> bool:
        """Whether Kueue decides when this workload starts."""
        return bool(self.labels.get(KUEUE_QUEUE))

    def kueue_topology(self, template: JSON | None) -> tuple[str, str, int]:
        """The topology that Kueue's annotations ask for where Kueue itself does not assign it.

        The key for the whole pod set, the key for a slice of it, and the size of a slice.
        """
        found = template_annotations(template)
        if self.in_queue:
            return "", "", 0
        size = str(found.get(KUEUE_SLICE_SIZE) or "")
        return (
            self._key(found, KUEUE_REQUIRED),
            self._key(found, KUEUE_SLICE),
            int(size) if size.isascii() and size.isdigit() else 0,
        )


def _asks_kueue(value: Any) -> bool:
    """Whether a pod template in a spec asks Kueue for a topology."""
    if isinstance(value, list):
        return any(_asks_kueue(each) for each in value)  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return False
    found: JSON = value
    annotations = found.get("annotations")
    if isinstance(annotations, dict) and any(str(key).startswith(KUEUE_PODSET) for key in annotations):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return True
    return any(_asks_kueue(each) for each in found.values())
