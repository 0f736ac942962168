"""A JobSet, also that of a TrainJob: a leaf for each Job, above it the replicated jobs, their groups, and the JobSet.

    Composite <jobset>-<uid8>-<attempt>
      Composite <jobset>-<replicated job>-<uid8>-<attempt>
        PodGroup <job>-<uid8>-<attempt>

Names carry the attempt, because a restarted JobSet creates pods of the new attempt while those of the old one are still
there. Jobs that the manager creates later, when others are ready or scheduled, are expected members; those that it
creates when others are complete are a gang of their own, and nothing is held for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.api.expected_members import COMPLETED, READY, SCHEDULED
from muster.api.job_gangs import pods_at_once
from muster.controllers.workloads.tree import (
    JSON,
    NOTHING,
    Branch,
    Expected,
    Leaf,
    Node,
    Remark,
    Sight,
    Tree,
    at,
    items,
    number,
    one_priority,
    short_uid,
    trimmed,
)
from muster.controllers.workloads.wishes import REPLICA, ROLE, SET, Wishes

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
IN_ORDER = "InOrder"
LEVELS = (SET, ROLE, REPLICA)


@dataclass(slots=True)
class _JobSet:
    """What is read of one JobSet."""

    name: str
    suffix: str  # of every group: uid and attempt
    jobs: list[JSON]
    wishes: Wishes
    exclusive: str
    in_order: bool
    after_completion: bool

    @staticmethod
    def of(owner: JSON) -> _JobSet:
        meta, spec = owner["metadata"], owner.get("spec") or {}
        jobs = items(spec.get("replicatedJobs"))
        parts = [*(_name(job) for job in jobs), *sorted({_group(job) for job in jobs})]
        annotations = meta.get("annotations") or {}
        waits = {str(each.get("status")) for job in jobs for each in items(job.get("dependsOn"))}
        return _JobSet(
            name=meta["name"],
            suffix=f"{short_uid(meta)}-{number(at(owner, 'status', 'restarts'), 0)}",
            jobs=jobs,
            wishes=Wishes.of(owner, LEVELS, tuple(parts)),
            exclusive="" if NODE_SELECTOR in annotations else str(annotations.get(EXCLUSIVE) or ""),
            in_order=at(spec, "startupPolicy", "startupPolicyOrder") == IN_ORDER,
            after_completion="Complete" in waits,
        )


def tree_of(owner: JSON, sight: Sight) -> Tree:
    """The groups of a JobSet; the annotations of the TrainJob above it count as its own."""
    owner = _with_parent(owner, sight.parent)
    spec: JSON = owner.get("spec") or {}
    if spec.get("suspend"):
        return NOTHING
    this = _JobSet.of(owner)
    wishes = this.wishes
    roles = [role for index, job in enumerate(this.jobs) if (role := _role(this, job, index)) is not None]
    templates = [at(job, "template", "spec", "template") or {} for job in this.jobs]
    priority, remarks = one_priority(templates)
    roots = _roots(this, roles)
    rules = items(at(spec, "failurePolicy", "rules"))
    apart = any("RestartJob" in str(rule.get("action")) and "JobSet" not in str(rule.get("action")) for rule in rules)
    return Tree(
        tuple(trimmed(root) for root in roots),
        priority,
        wishes.whole(not apart and not wishes.no_gang),
        (*wishes.remarks, *remarks, *_remarks(this)),
    )


def _with_parent(owner: JSON, parent: JSON | None) -> JSON:
    if parent is None:
        return owner
    meta, above = owner["metadata"], parent.get("metadata") or {}
    merged = {kind: {**(meta.get(kind) or {}), **(above.get(kind) or {})} or None for kind in ("annotations", "labels")}
    return {**owner, "metadata": {**meta, **merged}}


def _name(job: JSON) -> str:
    return str(job.get("name") or "")


def _group(job: JSON) -> str:
    return str(job.get("groupName") or "default")


def _role(this: _JobSet, job: JSON, index: int) -> Branch | None:
    """A replicated job."""
    name, replicas = _name(job), number(job.get("replicas"), 1)
    template: JSON = at(job, "template", "spec", "template") or {}
    required, sliced, size = this.wishes.kueue_topology(template)
    leaves = tuple(_leaf(this, job, each, index, (sliced, size)) for each in range(replicas))
    if not leaves:
        return None
    role = {"replicated-job": name}
    minimum = None if leaves[0].minimum is None else replicas
    topology = this.wishes.topology(name) or required
    return Branch(f"{this.name}-{name}-{this.suffix}", minimum, leaves, topology, role, name)


def _leaf(this: _JobSet, job: JSON, number_: int, index: int, slices: tuple[str, int]) -> Leaf:
    """One Job."""
    name, spec = _name(job), at(job, "template", "spec") or {}
    template: JSON = spec.get("template") or {}
    whole = pods_at_once(spec)
    asked = this.wishes.gang(template, whole)
    minimum = whole if isinstance(asked, str) else asked
    annotations = at(job, "template", "metadata", "annotations")
    topology = this.wishes.topology_in(annotations, at(template, "metadata", "annotations"))
    exclusive = this.exclusive or _exclusive(annotations)
    expected: tuple[Expected, ...] = ()
    if minimum is not None and _is_late(this, job, index):
        expected = (Expected(template, whole, READY),)
    elif minimum is not None and _is_after_completion(job):
        expected = (Expected(template, whole, COMPLETED),)
    elif minimum is not None and exclusive and whole > 1:
        expected = (Expected(template, whole, SCHEDULED),)
    sliced, size = slices
    return Leaf(
        f"{this.name}-{name}-{number_}-{this.suffix}",
        minimum,
        topology or exclusive or (sliced if size == whole else ""),
        {"replicated-job": name, "job-index": str(number_)},
        expected,
        f"{name}-job",
    )


def _exclusive(annotations: Any) -> str:
    found: JSON = annotations or {}
    return "" if NODE_SELECTOR in found else str(found.get(EXCLUSIVE) or "")


def _is_after_completion(job: JSON) -> bool:
    """Whether the Job is created when another is complete. Its room is not held: it is only looked at."""
    return any(str(each.get("status")) == "Complete" for each in items(job.get("dependsOn")))


def _is_late(this: _JobSet, job: JSON, index: int) -> bool:
    """Whether the Job is created when others are ready, and counts for the same gang."""
    if this.after_completion:
        return False
    return (this.in_order and index > 0) or bool(items(job.get("dependsOn")))


def _roots(this: _JobSet, roles: list[Branch]) -> list[Node]:
    level = this.wishes.level(SET, LEVELS)
    if level == REPLICA or this.wishes.no_gang:
        return [leaf for role in roles for leaf in role.children]
    if level == ROLE or this.after_completion:
        return [*roles]
    groups = sorted({_group(job) for job in this.jobs}, key=[_group(job) for job in this.jobs].index)
    children: tuple[Node, ...] = tuple(roles)
    if len(groups) > 1:
        of = {_name(job): _group(job) for job in this.jobs}
        children = tuple(
            _group_branch(this, group, tuple(role for role in roles if of[role.shape] == group)) for group in groups
        )
        children = tuple(child for child in children if isinstance(child, Branch) and child.children)
    if not children:
        return []
    gangs = all(isinstance(child, Branch) and child.minimum is not None for child in children)
    minimum = len(children) if gangs else None
    return [Branch(f"{this.name}-{this.suffix}", minimum, children, this.wishes.topology(), {}, "jobset")]


def _group_branch(this: _JobSet, group: str, roles: tuple[Branch, ...]) -> Branch:
    minimum = len(roles) if all(role.minimum is not None for role in roles) else None
    name, role = f"{this.name}-group-{group}-{this.suffix}", {"group": group}
    return Branch(name, minimum, roles, this.wishes.topology(group), role, f"group-{group}")


def _remarks(this: _JobSet) -> list[Remark]:
    found: list[Remark] = []
    if this.after_completion:
        text = (
            "replicated jobs that depend on the completion of others are a gang of their own: no room is held for them"
        )
        found.append(Remark("GangInParts", text, warning=False))
    if this.exclusive:
        text = (
            f"{EXCLUSIVE} makes pods wait until the first of each Job is scheduled; "
            "scheduling.muster.dev/topology starts them together"
        )
        found.append(Remark("ExclusivePlacementLimitsGang", text))
    return found
