"""`muster simulate`: what would happen if these manifests were submitted now. Nothing is written to the cluster."""

from __future__ import annotations

import asyncio
import textwrap
from typing import TYPE_CHECKING, Any

import click
import msgspec

from muster.cli import exits, live, node_options, output, progress, source
from muster.cli.manifests import ManifestError, object_documents
from muster.scheduler.status.messages import count_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from muster.cli.progress import Bar
    from muster.cli.submission import Batch
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.groups.group import Member
    from muster.scheduler.interface.keys import ObjectRef
    from muster.scheduler.simulation.simulate import Simulation
    from muster.scheduler.simulation.snapshot import Snapshot

MOST_NODES = 24  # rows of the table for people


class Placement(msgspec.Struct, frozen=True):
    """A submitted pod (namespace/name) and the node that it would be bound to."""

    pod: str
    node: str


class Victim(msgspec.Struct, frozen=True):
    """A pod that would be evicted, and for whom (kind/name)."""

    pod: str
    preemptor: str


class WaitingPod(msgspec.Struct, frozen=True):
    """A submitted pod that would not be bound, and why."""

    pod: str
    reason: str
    undecided: bool = False


class GroupCondition(msgspec.Struct, frozen=True):
    """The condition that a submitted group would have."""

    kind: str
    namespace: str
    name: str
    status: str
    reason: str
    message: str


class Answer(msgspec.Struct, frozen=True):
    """The JSON of `muster simulate -o json`."""

    fits: bool
    undecided: bool
    pods: int  # how many were submitted
    placements: tuple[Placement, ...]
    victims: tuple[Victim, ...]
    pending: tuple[WaitingPod, ...]
    groups: tuple[GroupCondition, ...]


@click.command(name="simulate")
@click.option("--filename", "-f", "files", multiple=True, required=True, help="Manifests: files, directories or -.")
@click.option("--recursive", "-R", is_flag=True, help="Look into the directories of a directory as well.")
@click.option("--namespace", "-n", default=None, help="For manifests that name none; default: that of the context.")
@source.options
@node_options.options()
@output.option
def command(
    files: tuple[str, ...],
    recursive: bool,
    namespace: str | None,
    source: source.Source,
    nodes: node_options.NodeFlags,
    output_format: str,
) -> int:
    """Say where the pods of some manifests would go, who would be evicted, and what would stay pending.

    The cluster is a live one (--kubeconfig), a file (--snapshot) or an empty one of so many nodes (--nodes).
    Each -f is submitted when the one before it has come to rest.
    Exit code 0: everything fits; 1: something does not; 2: undecided within the search budget.
    """
    if nodes.count and source.snapshot is not None:
        raise click.UsageError("--nodes makes a cluster of its own, so it cannot be combined with --snapshot")
    try:
        batches = [object_documents([file], recursive=recursive) for file in files]
    except ManifestError as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from error
    where = namespace or ("default" if nodes.count else source.default_namespace())
    with progress.shown() as bar:
        snapshot = nodes.snapshot() if nodes.count else source.read(bar)
        answer = simulate(snapshot, batches, where, bar)
    output.write(answer, output_format, lambda: "\n".join(_lines(answer, live.width())))
    if answer.fits:
        return exits.OK
    return exits.UNDECIDED if answer.undecided else exits.NO


def simulate(snapshot: Snapshot, batches: list[Batch], namespace: str = "default", bar: Bar | None = None) -> Answer:
    """Schedule what is pending; then submit batch after batch, and schedule all there is to schedule after each."""
    from muster.cli.submission import submit
    from muster.scheduler.simulation.simulate import Simulation

    submitted = asyncio.run(submit(batches, snapshot, namespace))
    pods = [event.object for batch in submitted for event in batch if event.kind == "Pod"]
    names = {pod.spec.scheduler_name for pod in pods}
    known = msgspec.structs.replace(snapshot, schedulers=tuple(sorted({*snapshot.schedulers, *names})))
    scheduler = source.scheduler_for(known, bar)
    if bar is not None:
        bar.stage("Deciding")
    Simulation(scheduler).run()
    after = Simulation(scheduler)
    for batch in submitted:
        for event in batch:
            scheduler.handle(event, after.now)
        after.run()
    groups = {event.object.metadata.uid for batch in submitted for event in batch}
    return _answer(after, scheduler.view(), [_ref(pod) for pod in pods], groups)


def _ref(pod: Any) -> ObjectRef:
    from muster.scheduler.interface.keys import ObjectRef

    return ObjectRef("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _answer(simulation: Simulation, view: SchedulerView, submitted: list[ObjectRef], uids: set[str]) -> Answer:
    placed = [Placement(_name(ref), simulation.placed[ref]) for ref in submitted if ref in simulation.placed]
    members = [(ref, view.members[ref.uid]) for ref in submitted if ref.uid in view.members]
    pending = [_pending(simulation, ref, member) for ref, member in members if not member.node]
    victims = tuple(Victim(_name(pod), f"{by.kind}/{by.name}") for pod, by in simulation.victims.items())
    groups = tuple(
        GroupCondition(ref.kind, ref.namespace, ref.name, condition.status, condition.reason, condition.message)
        for ref, condition in simulation.conditions.items()
        if ref.kind != "Pod" and ref.uid in uids and condition.type.endswith("Scheduled")
    )
    fits = len(placed) == len(submitted)
    undecided = bool(pending) and all(each.undecided for each in pending)
    placements = tuple(sorted(placed, key=lambda placement: output.natural(placement.pod)))
    return Answer(fits, undecided, len(submitted), placements, victims, tuple(pending), groups)


def _pending(simulation: Simulation, ref: ObjectRef, member: Member) -> WaitingPod:
    from muster.scheduler.status.messages import UNDECIDED_PREFIX
    from muster.scheduler.status.waiting import own_wait

    group, condition = member.group, simulation.conditions.get(ref)
    if condition is not None:
        text = condition.message
    elif group is not None and not group.exists:
        text = f"pod group {group.key.name} does not exist"
    elif group is not None and not group.admissible:
        text = f"pod group {group.key.name}: {own_wait(group)[1]}"
    elif group is not None and not group.root().exists:
        text = f"composite pod group {group.root().key.name} does not exist"
    elif group is not None and not group.root().admissible:
        text = f"composite pod group {group.root().key.name}: {own_wait(group.root())[1]}"
    else:
        text = "it has scheduling gates, or its group has members that do"
    return WaitingPod(_name(ref), text, UNDECIDED_PREFIX in text)


def _name(ref: ObjectRef) -> str:
    return f"{ref.namespace}/{ref.name}"


# --- for people ------------------------------------------------------------------------------------


def _lines(answer: Answer, width: int) -> Iterator[str]:
    if answer.placements:
        yield from _cut(output.table(["node", "pods", "names"], list(_by_node(answer))), width)
        yield ""
    if answer.victims:
        rows = [(_few(names), by) for by, names in _grouped((v.preemptor, v.pod) for v in answer.victims)]
        yield from _cut(output.table(["evicted", "for"], rows), width)
        yield ""
    for reason, names in _grouped((each.reason, each.pod) for each in answer.pending):
        yield from textwrap.wrap(f"Pending: {_few(names)}", width, subsequent_indent="  ", break_on_hyphens=False)
        yield from textwrap.wrap(reason, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        yield ""
    yield _verdict(answer)


def _verdict(answer: Answer) -> str:
    if not answer.pods:
        return "There is nothing to place: the manifests add no pods. Nothing was changed."
    evicted = f", {count_text(len(answer.victims), 'pod')} would be evicted" if answer.victims else ""
    verdict = "It fits" if answer.fits else ("Undecided" if answer.undecided else "It does not fit")
    bound = f"{len(answer.placements)} of {count_text(answer.pods, 'pod')} would be bound"
    return f"{verdict}: {bound}{evicted}. Nothing was changed."


def _by_node(answer: Answer) -> Iterator[tuple[str, int, str]]:
    found = _grouped((placement.node, placement.pod) for placement in answer.placements)
    rows = sorted(found, key=lambda row: output.natural(row[0]))
    for node, pods in rows[:MOST_NODES]:
        yield node, len(pods), _few(pods)
    rest = rows[MOST_NODES:]
    if rest:
        yield f"{len(rest)} more nodes", sum(len(pods) for _, pods in rest), "(-o json lists them)"


def _cut(table: str, width: int) -> Iterator[str]:
    return (live.fit(line, width) for line in table.splitlines())


def _few(names: list[str]) -> str:
    shown = ", ".join(sorted(names, key=output.natural)[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Names by what they have in common: a reason, a node, a preemptor."""
    found: dict[str, list[str]] = {}
    for key, name in pairs:
        found.setdefault(key, []).append(name)
    return list(found.items())
