"""Before binds are sent: are their nodes still free, as far as the watches have shown by now?

Other schedulers bind pods too. Binds that would fail on the node are answered with `BindFailed` instead of being sent:
all binds of an entity together while none of them was sent, so that a gang that lost a race is placed again as a whole.
Nothing is changed here; the answers are events like those of the server.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.scheduler.checking.admission import admission_fault
from muster.scheduler.groups.group import entity_key
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.interface.events import LOST_RACE, BindFailed
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.scheduler_state import SchedulerState


def lost_races(state: SchedulerState, binds: Sequence[Bind]) -> list[BindFailed]:
    """The answers to binds that must not be sent, none of which has been sent so far."""
    faults: dict[EntityKey, str] = {}
    keys: dict[str, EntityKey] = {}
    for bind in binds:
        member = state.forest.members.get(bind.pod.uid)
        if member is None:
            continue  # it is gone, and with it the seat
        key = keys[bind.pod.uid] = entity_key(member)
        if key not in faults and (fault := fault_of(state, bind)):
            faults[key] = fault
    return [
        BindFailed(bind.pod.uid, bind.node, faults.get(keys.get(bind.pod.uid, _NO_KEY), "the pod is gone"), LOST_RACE)
        for bind in binds
        if keys.get(bind.pod.uid, _NO_KEY) in faults or bind.pod.uid not in keys
    ]


def fault_of(state: SchedulerState, bind: Bind) -> str:
    """Why one bind must not be sent now; empty if it may."""
    member = state.forest.members.get(bind.pod.uid)
    if member is None or member.assumed != bind.node:
        return "" if member is not None and member.pod.spec.node_name == bind.node else "the pod changed meanwhile"
    ignores = state.shape_of(member).profile.ignores
    return admission_fault(state.cluster, bind.pod.uid, ignores) or ""


_NO_KEY = EntityKey("", "", "")
