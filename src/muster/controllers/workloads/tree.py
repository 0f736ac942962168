"""The groups that one workload needs, as values: leaves with their minimums, branches above them, and remarks.

A tree is made by the `tree_of` of a kind and turned into objects by `group_objects`. Levels with one child are left
out; a leaf on its own is a PodGroup without a Workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from muster.api.pod_conditions import SHORT_UID, Facts

JSON = dict[str, Any]

NO_ROLE: Mapping[str, str] = {}


class Remark(NamedTuple):
    """Something that the owner of a workload should know; becomes an event on it."""

    reason: str
    message: str
    warning: bool = True


@dataclass(frozen=True, slots=True)
class Expected:
    """Members that may come later than others: their pod template, how many there are in all, what they wait for."""

    template: JSON
    count: int
    after: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """A PodGroup. Without a minimum it is basic: its pods start one by one."""

    name: str
    minimum: int | None
    topology: str = ""
    role: Mapping[str, str] = field(default_factory=lambda: NO_ROLE)
    expected: tuple[Expected, ...] = ()
    shape: str = ""  # what its template is called


@dataclass(frozen=True, slots=True)
class Branch:
    """A CompositePodGroup. The minimum counts children; without one it is basic."""

    name: str
    minimum: int | None
    children: tuple[Node, ...]
    topology: str = ""
    role: Mapping[str, str] = field(default_factory=lambda: NO_ROLE)
    shape: str = ""


Node = Leaf | Branch


@dataclass(frozen=True, slots=True)
class Tree:
    """What one workload needs now. `whole`: the manager restarts everything when a part fails."""

    roots: tuple[Node, ...] = ()
    priority_class: str = ""
    whole: bool = False
    remarks: tuple[Remark, ...] = ()

    def nodes(self) -> Iterator[tuple[Node, Branch | None]]:
        """Every group and its parent, parents first."""
        for root in self.roots:
            yield from _below(root, None)

    def leaves(self) -> Iterator[Leaf]:
        return (node for node, _ in self.nodes() if isinstance(node, Leaf))


NOTHING = Tree()


def _below(node: Node, parent: Branch | None) -> Iterator[tuple[Node, Branch | None]]:
    yield node, parent
    if isinstance(node, Branch):
        for child in node.children:
            yield from _below(child, node)


def trimmed(node: Node) -> Node:
    """The same groups without levels that have a single child, unless both ends ask for a topology."""
    if isinstance(node, Leaf):
        return node
    children = tuple(trimmed(child) for child in node.children)
    if len(children) == 1 and not (node.topology and children[0].topology):
        (only,) = children
        return replace(only, topology=only.topology or node.topology, role={**node.role, **only.role})
    return replace(node, children=children)


def is_all_gangs(node: Node) -> bool:
    """Whether every group of a tree has a minimum, as disruption as a whole demands."""
    if isinstance(node, Leaf):
        return node.minimum is not None
    return node.minimum is not None and all(is_all_gangs(child) for child in node.children)


# --- owners and templates, as JSON -----------------------------------------------------------------


def at(obj: Any, *path: str) -> Any:
    """The value at a path, None where a part is missing or is no object."""
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return obj  # pyright: ignore[reportUnknownVariableType]


def number(value: Any, missing: int) -> int:
    """A count of an owner's spec; what is no count counts as missing."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else missing


def items(value: Any) -> list[JSON]:
    """The objects in a list."""
    found: list[Any] = value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
    return [each for each in found if isinstance(each, dict)]


def short_uid(meta: JSON) -> str:
    return str(meta.get("uid") or "")[:SHORT_UID]


def template_annotations(template: Any) -> Mapping[str, str]:
    found = at(template, "metadata", "annotations")
    return found if isinstance(found, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]


def one_priority(templates: Iterable[JSON], named: str = "") -> tuple[str, list[Remark]]:
    """The class of all groups: the one that the workload names, or that all its pods name."""
    found = {str(at(each, "spec", "priorityClassName") or "") for each in templates}
    if named or len(found) <= 1:
        return named or next(iter(found), ""), []
    listed = ", ".join(repr(each) if each else "none" for each in sorted(found))
    text = f"its pods name different priority classes ({listed}): the groups name none, and the lowest priority counts"
    return "", [Remark("MixedPriorities", text)]


class Sight(NamedTuple):
    """What else is known when a tree is made: the leaves that pods name, and the object above the owner."""

    seen: Mapping[str, Facts] = {}  # by the name of the leaf: one of its pods
    parent: JSON | None = None
    infer_job_gangs: bool = True  # the gate InferJobGang
