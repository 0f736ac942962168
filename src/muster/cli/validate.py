"""`muster validate`: check manifests without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click
import msgspec
from msgspec import UNSET, UnsetType

from muster.cli import exits, output

if TYPE_CHECKING:
    from muster.views.documents import Document


class Problem(msgspec.Struct, frozen=True):
    """One problem of a manifest, as `-o json` prints it; what is not known of it is left out."""

    file: str
    line: int
    object: str | UnsetType = UNSET
    field: str | UnsetType = UNSET
    message: str = ""


@click.command(name="validate")
@click.option("--filename", "-f", "paths", multiple=True, required=True, help="A file, a directory, or - for stdin.")
@click.option("--recursive", "-R", is_flag=True, help="Look into the directories of a directory as well.")
@click.option("--verbose", "-v", is_flag=True, help="Also name the objects that there are no rules for.")
@output.option
@click.pass_context
def command(ctx: click.Context, paths: tuple[str, ...], recursive: bool, verbose: bool, output_format: str) -> None:
    """Check Workloads, PodGroups, CompositePodGroups and what pods say about them.

    Every problem is printed as FILE:LINE: KIND/NAME: FIELD: MESSAGE. The exit code is 0 when there is none, else 1.
    """
    from muster.cli.manifests import ManifestError, documents, sources

    problems: list[Problem] = []
    unknown: list[str] = []
    checked = 0
    for source, path in sources(paths, recursive=recursive):
        try:
            for document in documents(source, path):
                checked += 1
                problems += _check(document, unknown)
        except ManifestError as error:
            problems.append(Problem(error.source, error.line, message=error.message))
    output.write(problems, output_format, lambda: "\n".join(_line(problem) for problem in problems))
    if verbose:
        for remark in unknown:
            output.note(remark)
    if not problems and output_format == "table":
        output.note(_no_problems(checked, len(unknown)))
    if problems:
        ctx.exit(exits.NO)


def _no_problems(manifests: int, without_rules: int) -> str:
    if not manifests:
        return "No manifests found."
    rest = f"; {without_rules} of kinds that have no rules here (-v names them)" if without_rules else ""
    return f"No problems found in {manifests} manifest{'s' if manifests > 1 else ''}{rest}."


def _check(document: Document, unknown: list[str]) -> list[Problem]:
    """The problems of one document; one of a kind without rules is noted in `unknown`."""
    from muster.api.manifests import check

    title = _title(document.value)
    found = [Problem(document.source, line, title, message=message) for line, message in document.problems]
    if document.value is None:
        return found
    errors = check(document.value)
    if errors is None:
        unknown.append(f"{document.source}:{document.line}: {title}: there are no rules for this kind")
    for error in errors or ():
        line = document.line_of(error.field)
        found.append(Problem(document.source, line, title, error.field, error.body()))
    return sorted(found, key=lambda problem: problem.line)


def _title(value: Any) -> str:
    """KIND/NAME of an object, in lower case; empty for what is no object."""
    obj: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    metadata = obj.get("metadata")
    named: dict[str, Any] = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
    name = named.get("name") or named.get("generateName") or "?"
    return f"{obj.get('kind') or 'object'}/{str(name)[:253]}".lower() if obj else ""


def _line(problem: Problem) -> str:
    parts = (f"{problem.file}:{problem.line}", problem.object, problem.field, problem.message)
    return ": ".join(part for part in parts if part is not UNSET and part)
