"""The expected members of a PodGroup that do not exist yet, each with its ordinal, and the pods they will be.

Ordinals count the members of all templates in the order of the annotation. Of each template the existing members have
the lowest ordinals, so a member that comes takes the lowest that is left. Which template an existing pod is of is
read from its labels and requests: managers add to a template, they do not say which one it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from muster.api import types
from muster.api.expected_members import ExpectedMembers
from muster.scheduler.groups.group import Group
from muster.scheduler.interface.keys import EntityKey


class ExpectedMember(NamedTuple):
    """One member that does not exist yet."""

    group: EntityKey
    ordinal: int
    template: ExpectedMembers

    @property
    def uid(self) -> str:
        """Stands for the uid of the pod in requests, placements and nominations. No pod has such a uid."""
        return f"{self.group.namespace}/{self.group.name}/{self.ordinal}"

    @property
    def name(self) -> str:
        return f"{self.group.name}[{self.ordinal}]"


def expected_members(leaf: Group) -> Iterator[ExpectedMember]:
    """The members that a PodGroup lacks for its minimum and that will come, by ordinal."""
    left = leaf.expecting
    if not left:
        return
    present, first = _present(leaf), 0
    for index, template in enumerate(leaf.expectation.templates):
        for ordinal in range(first + present[index], first + template.count):
            if left == 0:
                return
            left -= 1
            yield ExpectedMember(leaf.key, ordinal, template)
        first += template.count


def expected_pod(member: ExpectedMember, scheduler: str, priority: int) -> types.Pod:
    """The pod that a member will be, as far as scheduling reads it.

    Claims that are made for each pod do not exist before it, so they are left out: devices and volumes are not held.
    """
    template = member.template.pod_template
    spec = replace(
        template.spec,
        scheduler_name=scheduler,
        priority=priority,
        scheduling_gates=None,
        scheduling_group=types.SchedulingGroup(member.group.name),
        containers=_with_requests(template.spec.containers),
        init_containers=_with_requests(template.spec.init_containers),
        resource_claims=tuple(
            claim for claim in template.spec.resource_claims or () if claim.resource_claim_template_name is None
        )
        or None,
        volumes=tuple(volume for volume in template.spec.volumes or () if volume.ephemeral is None) or None,
    )
    meta = types.PodMeta(
        name=member.name,
        namespace=member.group.namespace,
        uid=member.uid,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
    )
    return types.Pod(meta, spec)


def _with_requests(containers: tuple[types.Container, ...] | None) -> tuple[types.Container, ...] | None:
    """A limit without a request is the request too; an API server writes that into pods, not into templates."""
    if not any(container.resources is not None and container.resources.limits for container in containers or ()):
        return containers
    return tuple(
        replace(one, resources=replace(one.resources, requests=one.resources.limits | (one.resources.requests or {})))
        if one.resources is not None and one.resources.limits
        else one
        for one in containers or ()
    )


def holds_no_claims(leaf: Group) -> bool:
    """Whether expected pods will have claims of their own, which cannot be counted before they exist."""
    return any(
        any(claim.resource_claim_template_name is not None for claim in spec.resource_claims or ())
        or any(volume.ephemeral is not None for volume in spec.volumes or ())
        for spec in (template.pod_template.spec for template in leaf.expectation.templates)
    )


def _present(leaf: Group) -> list[int]:
    """How many members of each template exist."""
    templates = leaf.expectation.templates
    existing = [member.pod for member in leaf.pending.values() if not member.gated]
    existing += [member.pod for member in leaf.running.values()]
    if len(templates) == 1:
        return [len(existing) + len(leaf.finished)]
    present = [0] * len(templates)
    for pod in sorted(existing, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.uid)):
        open_ = [at for at, template in enumerate(templates) if present[at] < template.count]
        if open_:
            present[max(open_, key=lambda at: (*_likeness(pod, templates[at]), -at))] += 1
    for _ in leaf.finished:
        at = next((at for at, template in enumerate(templates) if present[at] < template.count), None)
        if at is not None:
            present[at] += 1
    return present


def _likeness(pod: types.Pod, template: ExpectedMembers) -> tuple[bool, bool]:
    """How well a pod agrees with a template: it has its labels, and it requests the same."""
    labels, wanted = pod.metadata.labels or {}, template.pod_template.metadata.labels or {}
    carries = all(labels.get(key) == value for key, value in wanted.items())
    return carries, _requests(pod.spec) == _requests(template.pod_template.spec)


def _requests(spec: types.PodSpec) -> list[object]:
    return [container.resources.requests if container.resources else None for container in spec.containers or ()]
