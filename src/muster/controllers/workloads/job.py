"""A Job of its own: one leaf, a gang where the Job is one.

    PodGroup <job>-<uid8>    gang of parallelism, basic where the Job is no gang

It is made only where pods name it: a Job whose pods were given a group by its controller, or by a JobSet, needs none.
"""

from __future__ import annotations

from muster.api.job_gangs import BadGangAnnotation, check_annotation, gang_annotation, minimum_of
from muster.controllers.workloads.tree import (
    JSON,
    NOTHING,
    Leaf,
    Remark,
    Sight,
    Tree,
    at,
    number,
    one_priority,
    short_uid,
)
from muster.controllers.workloads.wishes import BAD_ANNOTATION, Wishes


def tree_of(owner: JSON, sight: Sight) -> Tree:
    """The groups of a Job."""
    meta, spec = owner["metadata"], owner.get("spec") or {}
    name = f"{meta['name']}-{short_uid(meta)}"
    if spec.get("suspend") or name not in sight.seen:
        return NOTHING
    wishes = Wishes.of(owner)
    annotation = gang_annotation(meta.get("annotations"), spec)
    minimum = minimum_of(spec, annotation, infer=sight.infer_job_gangs)
    if annotation is not None:
        try:
            check_annotation(annotation, spec)
        except BadGangAnnotation as error:
            text = f"annotation scheduling.muster.dev/gang: {annotation!r} {error}"
            wishes.remarks.append(Remark(BAD_ANNOTATION, text))
            minimum = minimum_of(spec, infer=sight.infer_job_gangs)
    if minimum is not None:
        # Who has succeeded is not waited for again, even after the scheduler forgot it with its pod.
        left = number(spec.get("completions"), minimum) - number(at(owner, "status", "succeeded"), 0)
        minimum = max(1, min(minimum, left))
    template: JSON = spec.get("template") or {}
    required, sliced, size = wishes.kueue_topology(template)
    topology = wishes.topology_in(at(template, "metadata", "annotations"), meta.get("annotations"))
    priority, remarks = one_priority([template])
    leaf = Leaf(name, minimum, topology or required or (sliced if size == minimum else ""))
    return Tree(
        (leaf,),
        priority,
        wishes.whole(minimum is not None),
        (*wishes.remarks, *remarks),
    )
