"""What makes a tree of groups invalid for scheduling, and the message for it.

Two sorts. A layout fault (`Invalid`) contradicts the design of the API: cycles, depth, two Workloads,
differing priorities, an `all` composite over `single` children, templates that do not match. A member fault
(`SchedulerError`) is a pod whose scheduler, priority or preemption policy differs from its group's; where the root
names no priority class, its pods may have any priority. Both end when an object changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from muster.api import groups as api
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Group, names_no_class

INVALID = "Invalid"
SCHEDULER_ERROR = "SchedulerError"


class TreeFault(NamedTuple):
    """Reason and message of a tree that is not scheduled at all."""

    reason: str
    message: str


def find_fault(top: Group, forest: Forest) -> TreeFault | None:
    """The first fault of a tree, layout before members."""
    for text in _layout_faults(top, forest):
        return TreeFault(INVALID, text)
    for text in _member_faults(top):
        return TreeFault(SCHEDULER_ERROR, text)
    return None


def _layout_faults(top: Group, forest: Forest) -> Iterator[str]:
    groups = list(top.subtree())
    if len(groups) == 1 and not top.cyclic:  # most are: nothing above or below to contradict
        yield from _templates(groups, forest.workloads)
        return
    yield from _cycles(groups)
    yield from _depth(top)
    yield from _one_workload(groups)
    yield from _same_priority(top, groups)
    yield from _whole_disruption(groups)
    yield from _templates(groups, forest.workloads)


def _cycles(groups: list[Group]) -> Iterator[str]:
    for group in groups:
        if group.cyclic:
            names = [group.key.name]
            above = group.parent
            while above is not None and above is not group:
                names.append(above.key.name)
                above = above.parent
            yield "the parents form a cycle: " + " -> ".join([*names, group.key.name])


def _depth(top: Group) -> Iterator[str]:
    depth, level = 0, [top]
    while level:
        depth += 1
        level = [child for group in level for child in group.ordered_children()]
    if depth > api.MAX_DEPTH:
        yield f"the tree is {depth} levels deep, at most {api.MAX_DEPTH} are allowed"


def _one_workload(groups: list[Group]) -> Iterator[str]:
    first: tuple[str, str] | None = None
    for group in groups:
        ref = group.obj.spec.workload_ref if group.obj else None
        if ref is None:
            continue
        if first is None:
            first = (ref.workload_name, group.key.name)
        elif ref.workload_name != first[0]:
            yield (
                "all groups of a tree must reference one Workload, "
                f'"{first[1]}" references "{first[0]}" and "{group.key.name}" references "{ref.workload_name}"'
            )


def _same_priority(top: Group, groups: list[Group]) -> Iterator[str]:
    if top.obj is None:
        return
    for group in groups:
        if group is top or group.obj is None:
            continue
        mine, theirs = group.obj.spec.priority or 0, top.obj.spec.priority or 0
        if mine != theirs:
            yield f'group "{group.key.name}" has priority {mine}, its root "{top.key.name}" has {theirs}'
        policy, expected = _policy(group), _policy(top)
        if policy != expected:
            yield (f'group "{group.key.name}" has preemption policy {policy}, its root "{top.key.name}" has {expected}')


def _policy(group: Group) -> str:
    policy = group.obj.spec.preemption_policy if group.obj else None
    return policy or api.PREEMPT_LOWER_PRIORITY


def _whole_disruption(groups: list[Group]) -> Iterator[str]:
    for group in groups:
        if group.is_leaf or not group.disrupts_all:
            continue
        for child in group.ordered_children():
            if child.exists and not child.disrupts_all:
                yield (
                    f'composite "{group.key.name}" has disruption mode all, '
                    f'its child "{child.key.name}" must have it too'
                )


class _Template(NamedTuple):
    kind: str
    parent: str


def _templates(groups: list[Group], workloads: Mapping[tuple[str, str], api.Workload]) -> Iterator[str]:
    for group in groups:
        ref = group.obj.spec.workload_ref if group.obj else None
        workload = workloads.get((group.key.namespace, ref.workload_name)) if ref else None
        if ref is None or workload is None:
            continue
        known = _template_table(workload)
        template = known.get(ref.template_name)
        if template is None:
            yield f'Workload "{ref.workload_name}" has no template "{ref.template_name}", named by "{group.key.name}"'
        elif template.kind != group.key.kind:
            yield (
                f'template "{ref.template_name}" of Workload "{ref.workload_name}" is for a {template.kind}, '
                f'"{group.key.name}" is a {group.key.kind}'
            )
        else:
            yield from _below_parent(group, ref, template)


def _below_parent(group: Group, ref: api.WorkloadReference, template: _Template) -> Iterator[str]:
    above = group.parent.obj if group.parent is not None else None
    if above is None or above.spec.workload_ref is None:
        return
    expected = above.spec.workload_ref.template_name
    if template.parent != expected:
        yield (
            f'template "{ref.template_name}" of "{group.key.name}" is not below template "{expected}" '
            f'of its parent "{above.metadata.name}"'
        )


def _template_table(workload: api.Workload) -> dict[str, _Template]:
    table: dict[str, _Template] = {}
    spec = workload.spec
    for leaf in spec.pod_group_templates or ():
        table[leaf.name] = _Template("PodGroup", "")
    for composite in spec.composite_pod_group_templates or ():
        _add_templates(composite, "", table)
    return table


def _add_templates(template: api.CompositePodGroupTemplate, parent: str, table: dict[str, _Template]) -> None:
    table[template.name] = _Template("CompositePodGroup", parent)
    for leaf in template.pod_group_templates or ():
        table[leaf.name] = _Template("PodGroup", template.name)
    for child in template.composite_pod_group_templates or ():
        _add_templates(child, template.name, table)


def _member_faults(top: Group) -> Iterator[str]:
    if top.obj is None:
        return
    mixed = mixed_schedulers(top)
    if mixed is not None:
        yield mixed.message
    if names_no_class(top):
        return
    spec = top.obj.spec
    for _, priority, policy in sorted(top.traits):
        if spec.priority is not None and priority != spec.priority:
            yield (
                "all pods in a single pod group should have the same priority as the pod group's priority, "
                f"got {priority} and {spec.priority}"
            )
        expected = spec.preemption_policy
        if expected is not None and policy != expected:
            yield (
                "all pods in a single pod group should have the same preemption policy as the pod group's "
                f"preemption policy, got {policy} and {expected}"
            )


def mixed_schedulers(top: Group) -> TreeFault | None:
    """The fault of a tree whose pods name different schedulers; it needs no complete tree to be found."""
    names = sorted({scheduler for scheduler, _, _ in top.traits})
    if len(names) < 2:
        return None
    text = "all pods in a single pod group should have the same .spec.schedulerName set, "
    return TreeFault(SCHEDULER_ERROR, f'{text}got: "{names[0]}" and "{names[1]}"')
