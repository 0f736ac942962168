"""Group checks: which trees and groups must be looked at again, and what was found.

A tree whose objects changed may have become invalid or valid; a group whose bound members changed may have reached
or lost its minimum. Both are collected between two cycles.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.scheduler.groups.validity import TreeFault
from muster.scheduler.interface.keys import EntityKey


class GroupChecks:
    """Checks that are due, faults of invalid trees, and trees that are bound in part."""

    def __init__(self) -> None:
        self._trees: set[EntityKey] = set()
        self._groups: set[EntityKey] = set()
        self._faults: dict[EntityKey, TreeFault] = {}
        self._partly_bound_since: dict[EntityKey, float] = {}
        self._later_members_seen: set[str] = set()  # uids of groups

    # --- what is due -------------------------------------------------------------------------------

    def tree_changed(self, key: EntityKey) -> None:
        """An object of the tree with this top changed."""
        self._trees.add(key)

    def members_changed(self, key: EntityKey) -> None:
        """The bound members of a group changed, or the group itself."""
        self._groups.add(key)

    def take_trees(self) -> list[EntityKey]:
        """The trees to validate, in order; they are taken."""
        trees, self._trees = sorted(self._trees), set()
        return trees

    def take_groups(self) -> list[EntityKey]:
        """The groups to review, in order; they are taken."""
        groups, self._groups = sorted(self._groups), set()
        return groups

    # --- faults ------------------------------------------------------------------------------------

    def set_fault(self, key: EntityKey, fault: TreeFault) -> None:
        """The tree with this top is invalid."""
        self._faults[key] = fault

    def clear_fault(self, key: EntityKey) -> bool:
        """The tree is valid, or gone; whether it was invalid before."""
        return self._faults.pop(key, None) is not None

    def is_invalid(self, key: EntityKey) -> bool:
        return key in self._faults

    # --- members to come ---------------------------------------------------------------------------

    def is_first_look(self, uid: str) -> bool:
        """Whether the members that come later to the group of this uid were not looked at before."""
        new = uid not in self._later_members_seen
        self._later_members_seen.add(uid)
        return new

    def forget_group(self, uid: str) -> None:
        """The group is gone."""
        self._later_members_seen.discard(uid)

    # --- bound in part -----------------------------------------------------------------------------

    def set_partly_bound(self, key: EntityKey, partly: bool, now: float) -> None:
        """Whether a tree that never ran as a whole is bound in part; the time of the first call counts."""
        if partly:
            self._partly_bound_since.setdefault(key, now)
        else:
            self._partly_bound_since.pop(key, None)

    def take_overdue(self, now: float, limit: float) -> list[EntityKey]:
        """The trees that have been bound in part for longer than the limit; they are taken."""
        overdue = [key for key, since in self._partly_bound_since.items() if now - since >= limit]
        for key in overdue:
            del self._partly_bound_since[key]
        return overdue

    def due_times(self, limit: float) -> Iterable[float]:
        """When each tree that is bound in part becomes overdue."""
        return (since + limit for since in self._partly_bound_since.values())
