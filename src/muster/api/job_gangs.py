"""Whether a Job is a gang, and of how many pods: one answer for everyone who makes groups for Jobs.

In this order: the policy in the Job's own `spec.scheduling`; the annotation `scheduling.muster.dev/gang` on the Job or
on its pod template (`none`, `all` or a number); and, unless that is switched off, the Job's form: a static, fully
parallel Indexed Job (parallelism = completions > 1) is a gang of all its pods. Every other Job is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

GANG_ANNOTATION = "scheduling.muster.dev/gang"
NO_GANG, WHOLE_GANG = "none", "all"

Tree = Mapping[str, Any]


class BadGangAnnotation(ValueError):
    """The annotation has a value that means nothing; the message says what it may be."""


def minimum_of(spec: Tree, annotation: str | None = None, *, infer: bool = True) -> int | None:
    """How many pods of a Job must start together; None: it is no gang.

    `annotation` is the value of `gang_annotation`; one that means nothing counts as absent, because an object that is
    stored cannot be refused any more.
    """
    policy: Tree | None = _at(spec, "scheduling", "schedulingPolicy")
    if policy:
        gang: Tree | None = policy.get("gang")
        return None if gang is None else int(gang.get("minCount") or pods_at_once(spec))
    if annotation is not None:
        try:
            return _from_annotation(annotation, pods_at_once(spec))
        except BadGangAnnotation:
            pass
    return pods_at_once(spec) if infer and _is_fully_parallel(spec) else None


def gang_annotation(annotations: Tree | None, spec: Tree) -> str | None:
    """The annotation of a Job: its own, else that of its pod template."""
    for found in (annotations, _at(spec, "template", "metadata", "annotations")):
        if isinstance(found, Mapping) and GANG_ANNOTATION in found:
            return str(cast("Tree", found)[GANG_ANNOTATION])
    return None


def check_annotation(value: str, spec: Tree) -> None:
    """BadGangAnnotation unless the value means something for a Job with this spec."""
    most = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
    if (_from_annotation(value, pods_at_once(spec)) or 0) > max(1, most):
        raise BadGangAnnotation(f"must not be greater than parallelism ({most})")


def pods_at_once(spec: Tree) -> int:
    """How many pods a Job runs at the same time when it begins, and at least one."""
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    most = 1 if parallelism is None else int(parallelism)
    return max(1, most if completions is None else min(most, int(completions)))


def _is_fully_parallel(spec: Tree) -> bool:
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    return spec.get("completionMode") == "Indexed" and parallelism == completions and int(parallelism or 0) > 1


def _from_annotation(value: str, whole: int) -> int | None:
    if value == NO_GANG:
        return None
    if value == WHOLE_GANG:
        return whole
    if value.isascii() and value.isdigit() and int(value) > 0:
        return int(value)
    raise BadGangAnnotation(f"must be {NO_GANG}, {WHOLE_GANG} or a number of pods, at least 1")


def _at(obj: Tree, *path: str) -> Any:
    found: Any = obj
    for key in path:
        found = cast("Tree", found).get(key) if isinstance(found, Mapping) else None
    return found
