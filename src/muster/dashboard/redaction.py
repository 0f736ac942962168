"""What a viewer may not read is counted, not named: on the map, in explanations, in answers of what-if.

Gangs of hidden namespaces become one nameless gang on each node (number 0). Texts that could name such an object are
replaced by ones that do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from muster.dashboard.access import ALL, Rights
from muster.scheduler.explain.explanation import Explanation, Holder, Suggestion
from muster.scheduler.status.messages import count_text
from muster.views.occupancy import GangOnNode
from muster.views.queue import QueueRow
from muster.views.simulate import Answer, Victim

HIDDEN = 0
ELSEWHERE = "in namespaces that you may not read"

GangCells = list[list[Any]]  # [gang number, pods, cpu, memory, gpu]


def gangs_on_node(gangs: Iterable[GangOnNode], rights: Rights, number: Any) -> GangCells:
    """The gangs of a node as they are sent; hidden ones are summed up."""
    cells: GangCells = []
    hidden = [0, 0, 0, 0]
    for each in gangs:
        if rights is ALL or rights.may_see_gang(each.gang):
            cells.append([number(each.gang), each.pods, *each.amounts])
        else:
            hidden = [a + b for a, b in zip(hidden, (each.pods, *each.amounts), strict=True)]
    if hidden[0]:
        cells.append([HIDDEN, *hidden])
    return cells


def queue_rows(rows: Iterable[QueueRow], rights: Rights) -> list[QueueRow]:
    """The rows that may be read; positions stay those of the whole queue."""
    return [row for row in rows if rights is ALL or rights.may_see(row.kind, row.namespace)]


def explanation(found: Explanation, rights: Rights) -> Explanation:
    """An explanation without the names of what is hidden."""
    if rights is ALL:
        return found
    return msgspec.structs.replace(
        found,
        holders=_holders(found.holders, rights),
        suggestions=tuple(_suggestion(each, rights) for each in found.suggestions),
        preemption=found.preemption
        if _sees_all(rights)
        else _without_names(found.preemption, "Preemption was considered"),
        devices=found.devices if _sees_all(rights) else (),
        reservation=found.reservation if _sees_all(rights) else _without_names(found.reservation, "Room is kept"),
    )


def answer(found: Answer, rights: Rights) -> Answer:
    """An answer of what-if without the names of hidden victims; they are counted as one row for each preemptor."""
    if rights is ALL:
        return found
    shown = [v for v in found.victims if rights.may_see("Pod", v.pod.partition("/")[0])]
    hidden = Counter(v.preemptor for v in found.victims if not rights.may_see("Pod", v.pod.partition("/")[0]))
    rows = [Victim(f"{count_text(pods, 'pod')} {ELSEWHERE}", by, pods) for by, pods in sorted(hidden.items())]
    return msgspec.structs.replace(found, victims=(*shown, *rows))


def _sees_all(rights: Rights) -> bool:
    return {"Pod", "PodGroup", "CompositePodGroup"} <= rights.everywhere


def _without_names(text: str, instead: str) -> str:
    return f"{instead}; whom it is about is not all yours to see" if text else ""


def _holders(holders: tuple[Holder, ...], rights: Rights) -> tuple[Holder, ...]:
    shown = [each for each in holders if rights.may_see(each.kind, each.namespace)]
    hidden = [each for each in holders if not rights.may_see(each.kind, each.namespace)]
    if hidden:
        pods = sum(each.pods for each in hidden)
        name = f"{count_text(len(hidden), 'gang')} {ELSEWHERE}"
        amounts = {"pods": str(pods)}
        shown.append(Holder("Hidden", "", name, max(each.priority for each in hidden), pods, amounts))
    return tuple(shown)


def _suggestion(found: Suggestion, rights: Rights) -> Suggestion:
    kind, namespace = found.details.get("kind"), found.details.get("namespace")
    if namespace is None or rights.may_see(str(kind), str(namespace)):
        return found
    pods = int(found.details.get("pods") or 0)
    text = f"wait for a gang of {count_text(pods, 'pod')} {ELSEWHERE} to end"
    return Suggestion(found.action, text, {"pods": pods})
