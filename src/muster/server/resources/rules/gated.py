"""Fields of built-in kinds that a feature gate switches off: dropped from what is new, kept where they are in use."""

from __future__ import annotations

from collections.abc import Callable

from muster.api.gates import WORKLOAD_WITH_JOB, FeatureGates
from muster.api.validation.pod import prepare_scheduling_group
from muster.server.resources.kind import Obj, Preparer

Dropper = Callable[[Obj, Obj | None, FeatureGates], None]


def dropping(drop: Dropper, gates: FeatureGates, prepare: Preparer | None) -> Preparer:
    """A kind's preparation with the dropping of gated fields before it."""

    def prepared(new: Obj, old: Obj | None, subresource: str) -> None:
        if not subresource:
            drop(new, old, gates)
        if prepare is not None:
            prepare(new, old, subresource)

    return prepared


def drop_from_pod(new: Obj, old: Obj | None, gates: FeatureGates) -> None:
    prepare_scheduling_group(new.get("spec") or {}, (old or {}).get("spec"), gates)


def drop_from_template(new: Obj, old: Obj | None, gates: FeatureGates) -> None:
    prepare_scheduling_group(_pod_spec(new) or {}, _pod_spec(old or {}), gates)


def drop_from_job(new: Obj, old: Obj | None, gates: FeatureGates) -> None:
    drop_from_template(new, old, gates)
    in_use = ((old or {}).get("spec") or {}).get("scheduling") is not None
    if not in_use and not gates.enabled(WORKLOAD_WITH_JOB):
        (new.get("spec") or {}).pop("scheduling", None)


def drop_from_cron_job(new: Obj, old: Obj | None, gates: FeatureGates) -> None:
    drop_from_job(_job_template(new), _job_template(old or {}), gates)


def _job_template(obj: Obj) -> Obj:
    return (obj.get("spec") or {}).get("jobTemplate") or {}


def _pod_spec(obj: Obj) -> Obj | None:
    template: Obj = (obj.get("spec") or {}).get("template") or {}
    return template.get("spec")
