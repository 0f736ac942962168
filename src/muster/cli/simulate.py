"""`muster simulate`: what would happen if these manifests were submitted now. Nothing is written to the cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click
import msgspec

from muster.cli import exits, node_options, output, source
from muster.cli.manifests import objects as read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.scheduler.events import Changed
    from muster.scheduler.rehearsal import Rehearsal
    from muster.scheduler.snapshot import Snapshot


class Placement(msgspec.Struct, frozen=True):
    pod: str
    node: str


class Victim(msgspec.Struct, frozen=True):
    pod: str
    preemptor: str


class Waiting(msgspec.Struct, frozen=True):
    pod: str
    reason: str


class Answer(msgspec.Struct, frozen=True):
    """The JSON of `muster simulate -o json`."""

    fits: bool
    undecided: bool
    placements: tuple[Placement, ...]
    victims: tuple[Victim, ...]
    pending: tuple[Waiting, ...]
    groups: dict[str, str]


@click.command(name="simulate")
@click.option("--filename", "-f", "files", multiple=True, required=True, help="Manifests: files, directories or -.")
@click.option("--namespace", "-n", default="default", show_default=True, help="For manifests that name none.")
@source.options
@node_options.options
@output.option
def command(
    files: tuple[str, ...],
    namespace: str,
    source: source.Source,
    nodes: node_options.NodeFlags,
    output_format: str,
) -> int:
    """Say where the pods of some manifests would go, who would be evicted, and what would stay pending.

    The cluster is a live one (--kubeconfig), a file (--snapshot) or an empty one of so many nodes (--nodes).
    Exit code 0: everything fits; 1: something does not; 2: undecided within the search budget.
    """
    snapshot = nodes.snapshot() if nodes.count else source.facts()
    answer = simulate(snapshot, read_objects(files), namespace)
    output.write(answer, output_format, lambda: "\n".join(_lines(answer)))
    if answer.fits:
        return exits.OK
    return exits.UNDECIDED if answer.undecided else exits.NO


def simulate(snapshot: Snapshot, objects: list[dict[str, Any]], namespace: str = "default") -> Answer:
    """Let the cluster come to rest, submit, and let it come to rest again."""
    from muster.cli.submission import submit
    from muster.scheduler.rehearsal import Rehearsal
    from muster.scheduler.snapshot import brain_of

    facts = asyncio.run(submit(objects, snapshot, namespace))
    schedulers = {event.object.spec.scheduler_name for event in facts if event.kind == "Pod"}
    known = msgspec.structs.replace(snapshot, schedulers=tuple(sorted({*snapshot.schedulers, *schedulers})))
    before = Rehearsal(brain_of(known, source.config_for(known))).run()
    after = Rehearsal(before.brain, now=before.now)
    for event in facts:
        after.brain.handle(event, after.now)
    after.run()
    return _answer(after, facts)


def _answer(rehearsal: Rehearsal, facts: list[Changed]) -> Answer:
    submitted = {event.object.metadata.uid for event in facts if event.kind == "Pod"}
    members = rehearsal.brain.world.forest.members
    placed = [Placement(_name(ref), node) for ref, node in rehearsal.placed.items() if ref.uid in submitted]
    waiting = [
        Waiting(_name(members[uid].ref), _reason(rehearsal, uid))
        for uid in sorted(submitted, key=lambda uid: _name(members[uid].ref) if uid in members else "")
        if uid in members and not members[uid].node
    ]
    victims = tuple(Victim(_name(pod), f"{by.kind}/{by.name}") for pod, by in rehearsal.victims.items())
    groups = {
        f"{ref.kind}/{ref.name}": f"{word.reason}: {word.message}" if word.message else word.reason
        for ref, word in rehearsal.words.items()
        if ref.kind != "Pod" and word.type.endswith("Scheduled")
    }
    undecided = any("PlacementNotGuaranteed" in text for text in groups.values())
    return Answer(not waiting, undecided, tuple(sorted(placed, key=lambda p: p.pod)), victims, tuple(waiting), groups)


def _reason(rehearsal: Rehearsal, uid: str) -> str:
    words = [word for ref, word in rehearsal.words.items() if ref.uid == uid]
    if words:
        return words[-1].message
    member = rehearsal.brain.world.forest.members[uid]
    group = member.group
    if group is not None and not group.seen:
        return f"pod group {group.key.name} does not exist"
    return f"its group has {group.known} of {group.minimum} members" if group is not None else ""


def _name(ref: Any) -> str:
    return f"{ref.namespace}/{ref.name}"


def _lines(answer: Answer) -> Iterator[str]:
    if answer.placements:
        by_node: dict[str, list[str]] = {}
        for placement in answer.placements:
            by_node.setdefault(placement.node, []).append(placement.pod)
        yield output.table(["node", "pods", "names"], [(n, len(p), _few(p)) for n, p in sorted(by_node.items())])
        yield ""
    if answer.victims:
        yield output.table(["evicted", "for"], [(victim.pod, victim.preemptor) for victim in answer.victims])
        yield ""
    if answer.pending:
        yield output.table(["pending", "why"], _grouped(answer.pending))
        yield ""
    total = len(answer.placements) + len(answer.pending)
    evicted = f", {len(answer.victims)} pods would be evicted" if answer.victims else ""
    verdict = "It fits" if answer.fits else ("Undecided" if answer.undecided else "It does not fit")
    yield f"{verdict}: {len(answer.placements)} of {total} pods would be bound{evicted}. Nothing was changed."


def _few(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _grouped(pending: tuple[Waiting, ...]) -> list[tuple[str, str]]:
    """Pods with one reason in one row."""
    by_reason: dict[str, list[str]] = {}
    for each in pending:
        by_reason.setdefault(each.reason, []).append(each.pod)
    return [(_few(names), reason) for reason, names in by_reason.items()]
