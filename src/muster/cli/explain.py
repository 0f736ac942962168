"""`muster explain`: why a pod or group is pending, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from muster.api.errors import ApiError
from muster.cli import exits, output, source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.client.protocol import Client
    from muster.scheduler.cycle import Brain
    from muster.scheduler.explain import Explanation, Holder, Level
    from muster.scheduler.groups import Member
    from muster.scheduler.snapshot import Snapshot

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
    try:
        snapshot = source.facts()
    except ApiError as error:
        if error.code != 403:
            raise
        return _from_the_object_alone(source, kind, where, name, error)
    explanation = explain_in(snapshot, kind, where, name)
    output.write(explanation, output_format, lambda: screen(explanation))
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


def explain_in(snapshot: Snapshot, kind: str, namespace: str, name: str) -> Explanation:
    """The explanation of one object in a snapshot."""
    from muster.scheduler.explain import explain, find_root

    brain = source.brain_for(snapshot)
    found = _of_job(brain, namespace, name) if kind == "Job" else find_root(brain, kind, namespace, name)
    if found is None:
        known = _names_like(brain, kind, namespace, name)
        hint = f"; there is {', '.join(known)}" if known else ""
        raise exits.Failure(f'{kind.lower()} "{name}" does not exist in namespace "{namespace}"{hint}', exits.BAD_INPUT)
    return explain(brain, found)


def _of_job(brain: Brain, namespace: str, name: str) -> Any:
    """A Job is explained by the root of one of its pods, a pending one if there is one."""
    from muster.scheduler.demands import root_key

    pods = [member for member in brain.world.forest.members.values() if _owned(member, namespace, name)]
    pods.sort(key=lambda member: (bool(member.node), member.order))
    if not pods:
        return None
    return brain.world.queue.roots.get(root_key(pods[0]), pods[0].group or pods[0])


def _owned(member: Member, namespace: str, name: str) -> bool:
    owners = member.pod.metadata.owner_references or ()
    return member.ref.namespace == namespace and any(o.kind == "Job" and o.name == name for o in owners)


def _names_like(brain: Brain, kind: str, namespace: str, name: str) -> list[str]:
    """Names a person may have meant."""
    import difflib

    forest = brain.world.forest
    if kind == "Pod":
        names = [m.ref.name for m in forest.members.values() if m.ref.namespace == namespace]
    else:
        names = [k.name for k, g in forest.groups.items() if k.kind == kind and k.namespace == namespace and g.seen]
    return difflib.get_close_matches(name, names, n=3)


# --- the screen ------------------------------------------------------------------------------------


def screen(found: Explanation) -> str:
    """The explanation for people: one screen, the answer first."""
    return "\n".join(_lines(found))


def _lines(found: Explanation) -> Iterator[str]:
    yield found.sentence[:1].upper() + found.sentence[1:] + "."
    if found.levels:
        yield ""
        yield from (_level(level) for level in found.levels)
    for level in found.levels:
        for domain in level.nearest:
            yield f"    {level.name}: {domain.text}"
    if found.rules:
        yield ""
        yield "Nodes that cannot take one more pod now:"
        yield from (f"  {rule.nodes:>6}  {rule.text}  (pods like {rule.pod})" for rule in found.rules)
    if found.holders:
        yield ""
        yield "Who holds what it needs:"
        yield from (f"  {_holder(holder)}" for holder in found.holders)
    if found.preemption:
        yield ""
        yield f"Preemption {found.preemption}."
    if found.wakes:
        yield f"It is tried again at {found.wakes}."
    if found.suggestions:
        yield ""
        yield "What would help (each was tried):"
        yield from (f"  - {suggestion.text}" for suggestion in found.suggestions)


def _level(level: Level) -> str:
    what = "members" if level.kind == "PodGroup" else "child groups"
    place = (
        f"  in {level.topology}={level.domain}"
        if level.domain
        else (f"  one {level.topology}" if level.topology else "")
    )
    kind = {"PodGroup": "podgroup", "CompositePodGroup": "composite"}[level.kind]
    state = "met" if level.met else "open"
    pending = f", {level.pending} pods pending" if level.pending else ""
    return (
        f"{'  ' * level.depth}{kind} {level.name}: {level.bound}/{level.minimum} {what} bound ({state}{pending}){place}"
    )


def _holder(holder: Holder) -> str:
    amounts = ", ".join(f"{amount} {name}" for name, amount in holder.amounts.items())
    return (
        f"{holder.kind} {holder.namespace}/{holder.name} (priority {holder.priority}): {amounts} in {holder.pods} pods"
    )


# --- with few rights -------------------------------------------------------------------------------


def _from_the_object_alone(asked: source.Source, kind: str, namespace: str, name: str, error: ApiError) -> int:
    """Without the right to see the cluster: what the object's own conditions and events say."""

    async def ask(client: Client) -> list[str]:
        from muster.api import resources as r

        resource = {"Pod": r.PODS, "Job": r.JOBS, "PodGroup": r.POD_GROUPS}.get(kind, r.COMPOSITE_POD_GROUPS)
        obj = await client.get(resource, name, namespace)
        lines = [
            f"{each['type']}={each['status']} ({each.get('reason', '')}): {each.get('message', '')}"
            for each in (obj.get("status") or {}).get("conditions") or []
        ]
        selector = f"regarding.name={name},regarding.kind={kind}"
        try:
            events = await client.list(r.EVENTS, namespace, field_selector=selector)
        except ApiError:
            return lines
        return lines + [f"event {each.get('reason', '')}: {each.get('note', '')}" for each in events.items[-5:]]

    lines = asked.call(ask)
    click.echo("\n".join(lines) if lines else f"{kind.lower()} {name} has no conditions yet.")
    output.note(f"A full explanation needs to see the cluster: {error.message}")
    return exits.OK
