"""Why one pod or group is pending, and what would help."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from muster.views.failures import ViewFailure
from muster.views.schedulers import scheduler_for
from muster.views.workloads import roots_of

if TYPE_CHECKING:
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.explain.explain import Target
    from muster.scheduler.explain.explanation import Explanation
    from muster.scheduler.simulation.snapshot import Snapshot
    from muster.views.progress import Progress


def explain_in(
    snapshot: Snapshot, kind: str, namespace: str, name: str, progress: Progress | None = None
) -> Explanation:
    """The explanation of one object in a snapshot."""
    return explain_with(scheduler_for(snapshot, progress), kind, namespace, name, progress, snapshot.changeable)


def explain_with(
    scheduler: Scheduler,
    kind: str,
    namespace: str,
    name: str,
    progress: Progress | None = None,
    changeable: Iterable[str] = ("minCount",),
) -> Explanation:
    """The explanation of one object of the cluster that a scheduler knows.

    `changeable` names the fields of groups that the server lets change.
    """
    from muster.scheduler.explain.explain import explain, find, find_of_job

    if kind in ("Pod", "PodGroup", "CompositePodGroup"):
        found = find(scheduler, kind, namespace, name)
    else:
        found = _of_workload(scheduler, kind, namespace, name)
        if found is None and kind == "Job":
            found = find_of_job(scheduler, namespace, name)
    if found is None:
        raise ViewFailure(_unknown(scheduler.view(), kind, namespace, name))
    if progress is None:
        return explain(scheduler, found, changeable=frozenset(changeable))
    return explain(
        scheduler, found, lambda tried: progress.over(tried, "Trying what would help"), frozenset(changeable)
    )


def _of_workload(scheduler: Scheduler, kind: str, namespace: str, name: str) -> Target | None:
    """A workload is explained by its groups, those that wait first."""
    from muster.scheduler.explain.explain import Target, find

    for root in roots_of(scheduler.view(), kind, namespace, name):
        found = find(scheduler, root.key.kind, namespace, root.key.name)
        if found is not None:
            return Target(kind, name, found.found)
    return None


def _unknown(view: SchedulerView, kind: str, namespace: str, name: str) -> str:
    if kind == "Job":
        return f'no pods of a job "{name}" exist in namespace "{namespace}"'
    if kind not in ("Pod", "PodGroup", "CompositePodGroup"):
        return f'no groups of {kind.lower()} "{name}" exist in namespace "{namespace}"'
    text = f'{kind.lower()} "{name}" does not exist in namespace "{namespace}"'
    known = _names_like(view, kind, namespace, name)
    if known:
        return f"{text}; there is {', '.join(known)}"
    elsewhere = sorted(_namespaces_of(view, kind, name))
    return f"{text}; it exists in {', '.join(elsewhere)}: use --namespace" if elsewhere else text


def _namespaces_of(view: SchedulerView, kind: str, name: str) -> set[str]:
    if kind == "Pod":
        return {member.ref.namespace for member in view.members.values() if member.ref.name == name}
    return {k.namespace for k, group in view.groups.items() if (k.kind, k.name) == (kind, name) and group.exists}


def _names_like(view: SchedulerView, kind: str, namespace: str, name: str) -> list[str]:
    """Names of such objects that are spelt nearly like the one that was asked for."""
    if kind == "Pod":
        names = [m.ref.name for m in view.members.values() if m.ref.namespace == namespace]
    else:
        names = [k.name for k, g in view.groups.items() if k.kind == kind and k.namespace == namespace and g.exists]
    return difflib.get_close_matches(name, names, n=3)
