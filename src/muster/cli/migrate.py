"""`muster migrate`: turn older manifests into current ones."""

from __future__ import annotations

import click

from muster.cli import exits, output


@click.command(name="migrate")
@click.option("--filename", "-f", "paths", multiple=True, required=True, help="A file, a directory, or - for stdin.")
@click.option("--recursive", "-R", is_flag=True, help="Look into the directories of a directory as well.")
@click.option(
    "--to",
    "target",
    type=click.Choice(("native", "crd")),
    default="native",
    show_default=True,
    help="The API of Kubernetes 1.37, or Muster's own CRDs for clusters without it.",
)
@click.pass_context
def command(ctx: click.Context, paths: tuple[str, ...], recursive: bool, target: str) -> None:
    """Rewrite manifests of earlier releases and of other gang schedulers; YAML on stdout, notes on stderr.

    Known are the first draft (scheduling/v1alpha1 with gangMode), 1.35 (podGroups and workloadRef), 1.36 (v1alpha2),
    the flat podGroupTemplateRef, Volcano's Job and PodGroup, and the PodGroup of the coscheduling plugin. What has no
    equivalent, such as queues, is named. Give pods and jobs together with their Workload, so that their groups are
    known. Comments are not kept. The exit code is 1 when a result still breaks a rule.
    """
    from muster.api.manifests import check
    from muster.api.migration import migrate
    from muster.api.migration.notes import title
    from muster.cli.manifests import ManifestError, object_documents
    from muster.cli.yaml_text import to_documents

    try:
        given = object_documents(paths, recursive=recursive)
    except ManifestError as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from None
    done = migrate([document.value for document in given], to_crd=target == "crd")
    click.echo(to_documents(done.objects), nl=False)
    for note in done.notes:
        document = given[done.places[note]] if note in done.places else None
        place = f"{document.source}:{document.line_of(note.path)}: " if document is not None else ""
        output.note(f"{place}{note}")
    faults = [f"{title(obj)}: still wrong: {error}" for obj in done.objects for error in check(obj) or ()]
    for fault in faults:
        output.note(fault)
    if faults:
        ctx.exit(exits.NO)
