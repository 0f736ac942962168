"""`muster explain`: why a pod or group is pending, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from muster.api.errors import ApiError
from muster.cli import exits, live, output, progress, source
from muster.cli.explain_limited import explain_limited
from muster.cli.explain_screen import screen

if TYPE_CHECKING:
    from muster.cli.progress import Bar
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.explain.explanation import Explanation
    from muster.scheduler.simulation.snapshot import Snapshot

KINDS = {
    "pod": "Pod",
    "pods": "Pod",
    "po": "Pod",
    "podgroup": "PodGroup",
    "podgroups": "PodGroup",
    "pg": "PodGroup",
    "compositepodgroup": "CompositePodGroup",
    "compositepodgroups": "CompositePodGroup",
    "cpg": "CompositePodGroup",
    "job": "Job",
    "jobs": "Job",
}


@click.command(name="explain")
@click.argument("target", metavar="KIND/NAME")
@click.option("--namespace", "-n", default=None, help="Namespace; default: that of the context.")
@source.options
@output.option
def command(target: str, namespace: str | None, source: source.Source, output_format: str) -> int:
    """Say why TARGET is pending and what would help, each suggestion tried before it is shown.

    KIND is pod, podgroup, compositepodgroup or job.
    """
    kind, name = _target(target)
    where = namespace or source.default_namespace()
    with progress.shown() as bar:
        try:
            snapshot = source.read(bar)
        except ApiError as error:
            if error.code != 403:
                raise
            explanation = explain_limited(source, kind, where, name, error)
        else:
            explanation = explain_in(snapshot, kind, where, name, bar)
    output.write(explanation, output_format, lambda: live.colour(screen(explanation, live.width())))
    return exits.OK


def _target(target: str) -> tuple[str, str]:
    word, slash, name = target.partition("/")
    kind = KINDS.get(word.lower())
    if not slash or not name or kind is None:
        raise exits.Failure(
            f"{target!r} is not KIND/NAME with pod, podgroup, compositepodgroup or job as KIND; "
            "for instance: muster explain podgroup/training",
            exits.USAGE,
        )
    return kind, name


def explain_in(snapshot: Snapshot, kind: str, namespace: str, name: str, bar: Bar | None = None) -> Explanation:
    """The explanation of one object in a snapshot."""
    from muster.scheduler.explain.explain import explain, find, find_of_job

    scheduler = source.scheduler_for(snapshot, bar)
    found = find_of_job(scheduler, namespace, name) if kind == "Job" else find(scheduler, kind, namespace, name)
    if found is None:
        raise exits.Failure(_unknown(scheduler.view(), kind, namespace, name), exits.BAD_INPUT)
    changeable = frozenset(snapshot.changeable)
    if bar is None:
        return explain(scheduler, found, changeable=changeable)
    return explain(scheduler, found, lambda tried: bar.over(tried, "Trying what would help"), changeable)


def _unknown(view: SchedulerView, kind: str, namespace: str, name: str) -> str:
    if kind == "Job":
        return f'no pods of a job "{name}" exist in namespace "{namespace}"'
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
    import difflib

    if kind == "Pod":
        names = [m.ref.name for m in view.members.values() if m.ref.namespace == namespace]
    else:
        names = [k.name for k, g in view.groups.items() if k.kind == kind and k.namespace == namespace and g.exists]
    return difflib.get_close_matches(name, names, n=3)
