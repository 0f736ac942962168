"""`muster explain`: why a pod or group is pending, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from muster.api.errors import ApiError
from muster.cli import cluster_names, exits, live, output, progress, source
from muster.cli.explain_screen import screen
from muster.views.explain import explain_in
from muster.views.workloads import kind_named

if TYPE_CHECKING:
    from muster.client.protocol import Client
    from muster.scheduler.explain.explanation import Explanation

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
}


@click.command(name="explain")
@click.argument("target", metavar="KIND/NAME", shell_complete=cluster_names.targets)
@click.option("--namespace", "-n", default=None, help="Namespace; default: that of the context.")
@source.options
@output.option
def command(target: str, namespace: str | None, source: source.Source, output_format: str) -> int:
    """Say why TARGET is pending and what would help, each suggestion tried before it is shown.

    KIND is pod, podgroup, compositepodgroup, or a workload: job, jobset, lws, trainjob, raycluster and so on.
    """
    kind, name = _target(target)
    where = namespace or source.default_namespace()
    with progress.shown() as bar:
        try:
            snapshot = source.read(bar)
        except ApiError as error:
            if error.code != 403:
                raise
            explanation = _limited(source, kind, where, name, error)
        else:
            explanation = explain_in(snapshot, kind, where, name, bar)
    output.write(explanation, output_format, lambda: live.colour(screen(explanation, live.width())))
    return exits.OK


def _target(target: str) -> tuple[str, str]:
    word, slash, name = target.partition("/")
    kind = KINDS.get(word.lower()) or kind_named(word)
    if not slash or not name or not kind:
        raise exits.Failure(
            f"{target!r} is not KIND/NAME with pod, podgroup, compositepodgroup, or a workload such as job as KIND; "
            "for instance: muster explain podgroup/training",
            exits.USAGE,
        )
    return kind, name


def _limited(source: source.Source, kind: str, namespace: str, name: str, refusal: ApiError) -> Explanation:
    from muster.views.explain_limited import explain_limited

    async def ask(client: Client) -> Explanation:
        return await explain_limited(client, kind, namespace, name, refusal)

    return source.call(ask)
