"""Priority: class names become numbers and preemption policies, for pods, pod groups and composite pod groups.

A class that is not given is the cluster's default class, if there is one. What the author wrote beside
the class must agree with it; what the author left out is taken from it.
"""

from __future__ import annotations

from typing import NamedTuple

from muster.api.errors import forbidden
from muster.api.gates import DEFAULT, PREEMPTION_POLICY, FeatureGates
from muster.api.groups import PREEMPT_LOWER_PRIORITY
from muster.server.resources.kind import Obj, Reader, Write

_GROUP = "scheduling.k8s.io"
_NOUNS = {"podgroups": "pod group", "compositepodgroups": "composite pod group"}


class Resolved(NamedTuple):
    """What a class name stands for."""

    name: str
    value: int
    policy: str


async def admit_pod_priority(write: Write, new: Obj, old: Obj | None) -> None:
    """A new pod gets its priority and preemption policy; an update that leaves them out keeps them."""
    spec: Obj = new.get("spec") or {}
    if write.operation == "UPDATE" and old is not None:
        _keep(spec, old.get("spec") or {})
    if write.operation != "CREATE" or write.subresource:
        return
    resolved = _resolve(write, spec.get("priorityClassName") or "")
    if spec.get("priority") not in (None, resolved.value):
        raise _refuse(
            write,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {resolved.value} from the given PriorityClass name",
        )
    _check_policy(write, spec, resolved, "pod")
    _apply(spec, resolved)
    spec["preemptionPolicy"] = resolved.policy


async def admit_group_priority(write: Write, new: Obj, old: Obj | None, gates: FeatureGates = DEFAULT) -> None:
    """A new group gets its priority and, unless that is switched off, its preemption policy.

    Templates of Workloads are left as they are.
    """
    spec: Obj = new.get("spec") or {}
    if write.operation != "CREATE" or write.subresource:
        return
    noun = _NOUNS[write.kind.plural]
    resolved = _resolve(write, spec.get("priorityClassName") or "")
    if spec.get("priority") not in (None, resolved.value):
        raise _refuse(
            write,
            f"priority set in the {noun} ({spec['priority']}) must match the priority computed ({resolved.value}) "
            "based on the priority class set in the spec",
        )
    _apply(spec, resolved)
    if gates.enabled(PREEMPTION_POLICY):
        _check_policy(write, spec, resolved, noun)
        spec["preemptionPolicy"] = resolved.policy


async def admit_priority_class(write: Write, new: Obj, old: Obj | None) -> None:
    """Only one class may be the default."""
    if write.operation == "DELETE" or not new.get("globalDefault"):
        return
    standing = _default_class(write.reader)
    if standing is not None and standing["metadata"]["name"] != write.name:
        name = standing["metadata"]["name"]
        raise _refuse(write, f"PriorityClass {name} is already marked as default. Only one default can exist")


def _resolve(write: Write, name: str) -> Resolved:
    if not name:
        found = _default_class(write.reader)
        if found is None:
            return Resolved("", 0, PREEMPT_LOWER_PRIORITY)
    else:
        found = write.reader.get("priorityclasses", _GROUP, "", name)
        if found is None:
            raise _refuse(write, f"no PriorityClass with name {name} was found")
    return Resolved(
        found["metadata"]["name"], int(found.get("value") or 0), found.get("preemptionPolicy") or PREEMPT_LOWER_PRIORITY
    )


def _default_class(reader: Reader) -> Obj | None:
    """The default class; the lowest one if, against the rule, there are several."""
    marked = [each for each in reader.list("priorityclasses", _GROUP) if each.get("globalDefault")]
    return min(marked, key=lambda each: int(each.get("value") or 0), default=None)


def _check_policy(write: Write, spec: Obj, resolved: Resolved, noun: str) -> None:
    given = spec.get("preemptionPolicy")
    if given is not None and given != resolved.policy:
        raise _refuse(
            write,
            f"the string value of PreemptionPolicy ({given}) must not be provided in {noun} spec; priority admission "
            f"controller computed {resolved.policy} from the given PriorityClass name",
        )


def _keep(spec: Obj, before: Obj) -> None:
    for key in ("priority", "preemptionPolicy"):
        if spec.get(key) is None and before.get(key) is not None:
            spec[key] = before[key]


def _apply(spec: Obj, resolved: Resolved) -> None:
    if resolved.name:
        spec["priorityClassName"] = resolved.name
    spec["priority"] = resolved.value


def _refuse(write: Write, why: str) -> Exception:
    return forbidden(write.kind.group, write.kind.plural, write.name, why)
