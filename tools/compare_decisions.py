"""Compares two files of `tools.record_decisions`: what decides the same, what does not, what is in only one of them.

    python -m tools.compare_decisions OLD NEW

A test that moved is found by its name and parameters if no other test of either file has them. The exit code is 1 if
anything changed or if something old is missing. `search` and `verdicts` without `hash`: the planner works differently
and decides the same. `inputs` with `hash`: either the test tells something else, or what was decided came back as an
event. `inputs` alone: only the test changed.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Entries = dict[str, dict[str, Any]]


@dataclass
class Comparison:
    equal: list[str] = field(default_factory=list)
    changed: dict[str, list[str]] = field(default_factory=dict)  # id -> what differs
    only_old: list[str] = field(default_factory=list)
    only_new: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)  # old id -> new id

    @property
    def same(self) -> bool:
        return not (self.changed or self.only_old)

    def __str__(self) -> str:
        lines = [f"equal: {len(self.equal)} ({len(self.moved)} of them or of the changed moved)"]
        lines.append(f"changed: {len(self.changed)}")
        lines += [f"  {name}: {', '.join(what)}" for name, what in self.changed.items()]
        lines.append(f"only old: {len(self.only_old)}")
        lines += [f"  {name}" for name in self.only_old]
        lines.append(f"only new: {len(self.only_new)}")
        lines += [f"  {name}" for name in self.only_new]
        return "\n".join(lines)


def compare(old: Entries, new: Entries) -> Comparison:
    found = Comparison()
    pairs = _pairs(old, new)
    for name, entry in old.items():
        partner = pairs.get(name)
        if partner is None:
            found.only_old.append(name)
            continue
        if partner != name:
            found.moved[name] = partner
        theirs = new[partner]
        differing = [key for key in entry if entry[key] != theirs.get(key)]
        if differing:
            found.changed[name if partner == name else f"{name} -> {partner}"] = [
                f"{key} {entry[key]} -> {theirs.get(key)}" if isinstance(entry[key], int) else key for key in differing
            ]
        else:
            found.equal.append(name)
    taken = set(pairs.values())
    found.only_new = [name for name in new if name not in taken]
    return found


def _pairs(old: Entries, new: Entries) -> dict[str, str]:
    """The same id, else the same name where it is unique among those left over."""
    pairs = {name: name for name in old if name in new}
    left = [name for name in old if name not in pairs]
    right = [name for name in new if name not in pairs]
    once_left, once_right = (Counter(map(_short, names)) for names in (left, right))
    by_name = {_short(name): name for name in right}
    for name in left:
        short = _short(name)
        if once_left[short] == 1 and once_right[short] == 1:
            pairs[name] = by_name[short]
    return pairs


def _short(test_id: str) -> str:
    """`tests/a.py::TestB::test_c[x::y]` -> `test_c[x::y]`."""
    head, bracket, parameters = test_id.partition("[")
    return head.rpartition("::")[2] + bracket + parameters


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    old, new = (json.loads(Path(name).read_text()) for name in arguments)
    found = compare(old, new)
    print(found)
    return 0 if found.same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
