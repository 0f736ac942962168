"""Feature gates: which parts of the group API are on, as `--feature-gates=A=true,B=false` says.

Everything this project does is on by default. A gate whose dependency is off is off as well; that is
reported as a message for the caller to log, because this room does no I/O. Gates of Kubernetes that
change nothing here are known by name, so that a kube-scheduler command line can be reused; who names one is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

GENERIC_WORKLOAD = "GenericWorkload"
GANG_SCHEDULING = "GangScheduling"
WORKLOAD_AWARE_PREEMPTION = "WorkloadAwarePreemption"
TOPOLOGY = "TopologyAwareWorkloadScheduling"
COMPOSITE = "CompositePodGroup"
PREEMPTION_POLICY = "PodGroupPreemptionPolicy"
RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"
WORKLOAD_WITH_JOB = "WorkloadWithJob"
INFER_JOB_GANG = "InferJobGang"
DELAYED_PREEMPTION = "DelayedPreemption"


class Gate(NamedTuple):
    """What a gate is by default, what it needs, why it cannot be switched off, and whether it does anything."""

    default: bool
    needs: tuple[str, ...] = ()
    locked: str = ""
    has_effect: bool = True


# Dependencies stand before their dependents, so that one pass resolves every chain.
KNOWN: Mapping[str, Gate] = {
    "DynamicResourceAllocation": Gate(True, (), "it is part of Kubernetes since 1.35"),
    GENERIC_WORKLOAD: Gate(True),
    # Off: members of groups are scheduled as single pods and keep their fields.
    GANG_SCHEDULING: Gate(True, (GENERIC_WORKLOAD,)),
    WORKLOAD_AWARE_PREEMPTION: Gate(True, (GANG_SCHEDULING,)),
    TOPOLOGY: Gate(True, (GENERIC_WORKLOAD,)),
    COMPOSITE: Gate(True, (GENERIC_WORKLOAD, TOPOLOGY)),
    PREEMPTION_POLICY: Gate(True, (GENERIC_WORKLOAD,)),
    # Off: claims of new groups are dropped, and no claims are made for groups.
    RESOURCE_CLAIMS: Gate(True, ("DynamicResourceAllocation", GENERIC_WORKLOAD)),
    WORKLOAD_WITH_JOB: Gate(True, (GENERIC_WORKLOAD,)),
    # Of this project alone. Off: a Job is a gang only where it says so itself.
    INFER_JOB_GANG: Gate(True, (GENERIC_WORKLOAD,)),
    DELAYED_PREEMPTION: Gate(True, (), "victims are never evicted before a checked plan needs them"),
    "OpportunisticBatching": Gate(True, has_effect=False),
    "SchedulerAsyncPreemption": Gate(True, has_effect=False),
    "SchedulerAsyncAPICalls": Gate(False, has_effect=False),
    "SchedulerPopFromBackoffQ": Gate(True, has_effect=False),
    "NominatedNodeNameForExpectation": Gate(True, has_effect=False),
    "ClearingNominatedNodeNameAfterBinding": Gate(True, has_effect=False),
    "SchedulerPreQueueingHints": Gate(False, has_effect=False),
    "InterPodAffinityHostnameFastPath": Gate(False, has_effect=False),
}

# Names under which articles write a gate, and its real name.
ALIASES: Mapping[str, str] = {"SchedulerOpportunisticBatching": "OpportunisticBatching"}


class FeatureGates(msgspec.Struct, frozen=True):
    """The gates that are on."""

    on: frozenset[str]

    def enabled(self, name: str) -> bool:
        """Whether a gate is on. Asking for a name that is no gate is a mistake in the program."""
        if name not in KNOWN:
            raise KeyError(name)
        return name in self.on

    def switched(self) -> dict[str, bool]:
        """The gates that are not at their default."""
        return {name: name in self.on for name, gate in KNOWN.items() if (name in self.on) != gate.default}


def parse(text: str = "") -> tuple[FeatureGates, list[str]]:
    """The gates of a `--feature-gates` value, and what to log about them. ValueError says what is wrong with it."""
    chosen: dict[str, bool] = {}
    messages: list[str] = []
    for part in text.split(","):
        if not part.strip():
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(f"missing bool value for feature gate {name!r}: write {name}=true or {name}=false")
        if name in ALIASES:
            messages.append(f"warning: feature gate {name} is an alias: its name is {ALIASES[name]}")
            name = ALIASES[name]
        chosen[name] = _switch(name, value)
    messages += [f"feature gate {name} has no effect here" for name in chosen if not KNOWN[name].has_effect]
    found, missing = resolve(chosen)
    return found, messages + missing


def _switch(name: str, value: str) -> bool:
    if name not in KNOWN:
        raise ValueError(f"unrecognized feature gate: {name} (known: {', '.join(sorted(KNOWN))})")
    if value.lower() not in ("true", "false", "t", "f", "1", "0"):
        raise ValueError(f"invalid value of {name}={value}: must be true or false")
    on = value.lower() in ("true", "t", "1")
    if KNOWN[name].locked and on != KNOWN[name].default:
        raise ValueError(f"{name}={value} is not supported: {KNOWN[name].locked}")
    return on


def resolve(chosen: Mapping[str, bool]) -> tuple[FeatureGates, list[str]]:
    """The gates that are on when some were chosen, and one message for each that lacks a dependency."""
    on = {name for name, gate in KNOWN.items() if chosen.get(name, gate.default)}
    messages: list[str] = []
    for name, gate in KNOWN.items():
        missing = [needed for needed in gate.needs if needed not in on]
        if name in on and missing:
            on.discard(name)
            messages.append(f"feature gate {name} is disabled: it depends on {', '.join(missing)}, which is off")
    return FeatureGates(frozenset(on)), messages


DEFAULT = resolve({})[0]
