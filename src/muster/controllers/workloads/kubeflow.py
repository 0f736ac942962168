"""The kinds of the training operator (PyTorchJob, TFJob, MPIJob ...): a leaf for each replica type, one gang above.

    Composite <job>-<uid8>
      PodGroup <job>-<replica type>-<uid8>

`runPolicy.schedulingPolicy.minAvailable` below the total makes the largest type smaller; the others keep theirs. The
launcher of an MPIJob v2beta1 is the pod of a Job and starts on its own.
"""

from __future__ import annotations

from typing import Any

from muster.controllers.workloads.tree import (
    JSON,
    NOTHING,
    Branch,
    Leaf,
    Remark,
    Sight,
    Tree,
    at,
    number,
    one_priority,
    short_uid,
    trimmed,
)
from muster.controllers.workloads.wishes import Wishes

REPLICA_SPECS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
_LAUNCHER = "launcher"


def tree_of(owner: JSON, sight: Sight) -> Tree:
    """The groups of one training job."""
    meta, spec = owner["metadata"], owner.get("spec") or {}
    if at(spec, "runPolicy", "suspend"):
        return NOTHING
    found: Any = spec.get(REPLICA_SPECS[str(owner["kind"])]) or {}
    types: dict[str, JSON] = {name.lower(): body or {} for name, body in found.items()}
    wishes, uid = Wishes.of(owner, (), tuple(types)), short_uid(meta)
    late = str(owner.get("apiVersion")).endswith("/v2beta1") and types.pop(_LAUNCHER, None) is not None
    sizes = {name: size for name, body in types.items() if (size := number(body.get("replicas"), 1)) > 0}
    minimums = _minimums(sizes, at(spec, "runPolicy", "schedulingPolicy", "minAvailable"))
    elastic = number(at(spec, "elasticPolicy", "minReplicas"), 0)
    if elastic and "worker" in minimums:
        minimums["worker"] = min(elastic, minimums["worker"])
    if wishes.no_gang:
        minimums = dict.fromkeys(sizes, 0)
    leaves = tuple(
        Leaf(
            f"{meta['name']}-{name}-{uid}",
            minimum or None,
            wishes.topology(name) or wishes.topology_in(at(types[name], "template", "metadata", "annotations")),
            {"replica-type": name},
            (),
            name,
        )
        for name, minimum in minimums.items()
    )
    templates = [body.get("template") or {} for body in types.values()]
    named = str(at(spec, "runPolicy", "schedulingPolicy", "priorityClass") or "")
    priority, remarks = one_priority(templates, named)
    if late:
        text = "the launcher is the pod of a Job and starts on its own; the gang is that of the workers"
        remarks.append(Remark("LauncherStartsAlone", text, warning=False))
    gangs = tuple(leaf for leaf in leaves if leaf.minimum is not None)
    singles = tuple(leaf for leaf in leaves if leaf.minimum is None)
    above = Branch(f"{meta['name']}-{uid}", len(gangs), gangs, wishes.topology(), {}, "job")
    roots = (trimmed(above), *singles) if gangs else singles
    return Tree(roots, priority, wishes.whole(False), (*wishes.remarks, *remarks))


def _minimums(sizes: dict[str, int], available: Any) -> dict[str, int]:
    """How many pods of each type must start together."""
    total = sum(sizes.values())
    if not isinstance(available, int) or isinstance(available, bool) or available >= total or not sizes:
        return dict(sizes)
    largest = max(sizes, key=lambda name: sizes[name])
    rest = available - (total - sizes[largest])
    return {name: max(0, rest) if name == largest else size for name, size in sizes.items()}
