"""A RayCluster, also that of a RayJob: the head and each worker group are leaves of one gang.

    Composite <cluster>-<uid8>
      PodGroup <cluster>-headgroup-<uid8>
      PodGroup <cluster>-<worker group>-<uid8>

With autoscaling the minimum of a worker group is its minReplicas. A group whose minimum is 0 stands beside the tree,
and its pods start one by one.
"""

from __future__ import annotations

from muster.api.membership import RAY
from muster.controllers.workloads.tree import (
    JSON,
    NOTHING,
    Branch,
    Leaf,
    Node,
    Sight,
    Tree,
    at,
    items,
    number,
    one_priority,
    short_uid,
    trimmed,
)
from muster.controllers.workloads.wishes import Wishes

HEAD = "headgroup"
PRIORITY_LABEL = f"{RAY}priority-class-name"
GANG_LABEL = f"{RAY}gang-scheduling-enabled"


def tree_of(owner: JSON, sight: Sight) -> Tree:
    """The groups of a RayCluster."""
    meta, spec = owner["metadata"], owner.get("spec") or {}
    if spec.get("suspend"):
        return NOTHING
    workers = items(spec.get("workerGroupSpecs"))
    names = tuple(str(each.get("groupName") or "") for each in workers)
    wishes, uid = Wishes.of(owner, (), (HEAD, *names)), short_uid(meta)
    no_gang = wishes.no_gang or wishes.labels.get(GANG_LABEL) == "false"
    head = Leaf(
        f"{meta['name']}-{HEAD}-{uid}", None if no_gang else 1, wishes.topology(HEAD), {"ray-group": HEAD}, (), HEAD
    )
    gangs: list[Node] = [head]
    singles: list[Node] = []
    for name, worker in zip(names, workers, strict=True):
        minimum = None if no_gang else _minimum(worker, autoscaled=bool(spec.get("enableInTreeAutoscaling"))) or None
        topology = wishes.topology(name) or wishes.topology_in(at(worker, "template", "metadata", "annotations"))
        leaf = Leaf(f"{meta['name']}-{name}-{uid}", minimum, topology, {"ray-group": name}, (), name)
        (singles if minimum is None else gangs).append(leaf)
    templates = [at(spec, "headGroupSpec", "template") or {}, *(each.get("template") or {} for each in workers)]
    priority, remarks = one_priority(templates, wishes.labels.get(PRIORITY_LABEL, ""))
    root = Branch(f"{meta['name']}-{uid}", len(gangs), tuple(gangs), wishes.topology(), {}, "cluster")
    roots = [*gangs, *singles] if no_gang else [trimmed(root), *singles]
    of_job = sight.parent is not None and sight.parent.get("kind") == "RayJob"
    return Tree(
        tuple(roots),
        priority,
        wishes.whole(of_job and not no_gang and not singles),
        (*wishes.remarks, *remarks),
    )


def _minimum(worker: JSON, *, autoscaled: bool) -> int:
    """How many pods of a worker group there are from the start."""
    if worker.get("suspend"):
        return 0
    least, most = number(worker.get("minReplicas"), 0), number(worker.get("maxReplicas"), 2**31 - 1)
    replicas = least if autoscaled else min(max(number(worker.get("replicas"), least), least), most)
    return replicas * max(1, number(worker.get("numOfHosts"), 1))
