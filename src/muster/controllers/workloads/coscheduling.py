"""A PodGroup written for the coscheduling plugin (`scheduling.x-k8s.io/v1alpha1`): one of ours with the same minimum.

PodGroup <name>-cos    gang of minMember
"""

from __future__ import annotations

from muster.controllers.workloads.tree import JSON, NOTHING, Leaf, Remark, Sight, Tree, number
from muster.controllers.workloads.wishes import Wishes


def tree_of(owner: JSON, sight: Sight) -> Tree:
    """The group that stands for another scheduler's."""
    spec, name = owner.get("spec") or {}, f"{owner['metadata']['name']}-cos"
    if name not in sight.seen:
        return NOTHING
    wishes = Wishes.of(owner)
    if spec.get("scheduleTimeoutSeconds") is not None:
        text = "scheduleTimeoutSeconds has no effect: a gang waits until it fits, and holds nothing while it waits"
        wishes.remarks.append(Remark("TimeoutIgnored", text, warning=False))
    leaf = Leaf(name, max(1, number(spec.get("minMember"), 1)), wishes.topology())
    return Tree((leaf,), "", wishes.whole(False), tuple(wishes.remarks))
