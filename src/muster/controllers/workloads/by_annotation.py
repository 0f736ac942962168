"""StatefulSets and ReplicaSets (so Deployments) whose pod template asks for a gang; all others have no groups.

    PodGroup <owner>-<uid8>    gang of all replicas or of so many

A rollout of a Deployment is a new ReplicaSet and so a new group. A StatefulSet that creates its pods one after another
has expected members: pod 0 starts only if there is room for all.
"""

from __future__ import annotations

from muster.api.expected_members import READY
from muster.controllers.workloads.tree import (
    JSON,
    NOTHING,
    Expected,
    Leaf,
    Sight,
    Tree,
    at,
    number,
    one_priority,
    short_uid,
)
from muster.controllers.workloads.wishes import Wishes


def tree_of(owner: JSON, sight: Sight) -> Tree:
    """The group of a StatefulSet or ReplicaSet whose pods name one."""
    meta, spec = owner["metadata"], owner.get("spec") or {}
    name = f"{meta['name']}-{short_uid(meta)}"
    replicas = number(spec.get("replicas"), 1)
    if name not in sight.seen or not replicas:
        return NOTHING
    wishes, template = Wishes.of(owner), spec.get("template") or {}
    asked = wishes.gang(template, replicas)
    minimum = None if isinstance(asked, str) else asked
    expected: tuple[Expected, ...] = ()
    if owner.get("kind") == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel" and minimum is not None:
        expected = (Expected(template, replicas, READY),) if replicas > 1 else ()
    topology = wishes.topology_in(at(template, "metadata", "annotations"), meta.get("annotations"))
    priority, remarks = one_priority([template])
    leaf = Leaf(name, minimum, topology or wishes.kueue_topology(template)[0], {}, expected)
    return Tree(
        (leaf,),
        priority,
        wishes.whole(False) and minimum is not None,
        (*wishes.remarks, *remarks),
    )
