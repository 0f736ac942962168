"""Finds the pods and pod templates in any object, however deep: a Job, a CronJob, a JobSet, a kind unknown here.

A pod template is known by its place in kinds of Kubernetes, and elsewhere by its form: an object whose `spec` has a
list of containers. Inputs are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from muster.api.manifests import pod_specs
from muster.api.validation import fields
from muster.api.validation.fields import Obj

Steps = tuple[str | int, ...]

_COUNTS = ("parallelism", "replicas")


class TemplateAt(NamedTuple):
    """A pod or pod template: the object that holds `spec` and its metadata, its place, and for how many pods it is."""

    holder: Obj
    steps: Steps
    pods: int = 1

    @property
    def spec_path(self) -> str:
        return path_of((*self.steps, "spec"))


def path_of(steps: Steps) -> str:
    """A place as people write it: spec.replicatedJobs[0].template."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def pod_templates(obj: Obj) -> Iterator[TemplateAt]:
    """The pod and pod templates of an object, in its order."""
    known = {tuple(at.path.split(".")) if at.path else () for at in pod_specs(obj)}
    for steps, value, around in _inside(obj):
        holder = fields.as_object(value)
        spec = fields.as_object(holder.get("spec"))
        if steps in known or isinstance(spec.get("containers"), list):
            yield TemplateAt(holder, steps, around)


def links_elsewhere(obj: Obj, link: str) -> Iterator[Steps]:
    """The places outside of pod templates at which something has that name, or a text speaks of it."""
    specs = {(*at.steps, "spec") for at in pod_templates(obj)}
    for steps, value, _ in _inside(obj):
        if isinstance(value, dict) and link in value and steps not in specs:
            yield (*steps, link)
        elif isinstance(value, str) and link in value and steps[:2] != ("metadata", "annotations"):
            yield steps


def _inside(obj: Obj) -> Iterator[tuple[Steps, Any, int]]:
    """Every value with its place and the number of pods that the counts around it multiply to."""
    pending: list[tuple[Steps, Any, int]] = [((), obj, 1)]
    while pending:
        steps, value, around = pending.pop()
        yield steps, value, around
        if isinstance(value, dict):
            inner = fields.as_object(value)
            count = next((inner[key] for key in _COUNTS if _is_count(inner.get(key))), 1)
            pending += reversed([((*steps, str(key)), inner[key], around * count) for key in inner])
        elif isinstance(value, list):
            pending += reversed([((*steps, index), item, around) for index, item in enumerate(fields.as_list(value))])


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def changed_at(value: Any, steps: Steps, change: Callable[[Obj], Obj]) -> Any:
    """A copy in which the object at a place is changed; everything else is shared."""
    if not steps:
        return change(fields.as_object(value))
    first, rest = steps[0], steps[1:]
    if isinstance(first, int):
        items = fields.as_list(value)
        return [changed_at(item, rest, change) if index == first else item for index, item in enumerate(items)]
    holder = fields.as_object(value)
    return {**holder, first: changed_at(holder.get(first), rest, change)}
