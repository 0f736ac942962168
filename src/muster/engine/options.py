"""From a KubeSchedulerConfiguration and a command line to what an engine is run with.

The file is kube-scheduler's own; the parts that concern the process (leader election, client connection) are
read here, the rest by `muster.scheduler.config`. A flag that was given wins over the file.
"""

from __future__ import annotations

import re
import socket
import uuid
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from muster.engine.leader_election import Election
from muster.engine.plugin_files import plugins_in
from muster.scheduler.framework.plugin import Plugin
from muster.scheduler.runtime.config import API_VERSION, KIND, Config, load

DEFAULT_NAME = "muster"
ENTRY_POINTS = "muster.constraints"

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")

Tree = Mapping[str, Any]


class BadOption(ValueError):
    """Something in the configuration that cannot be; the message names the field."""


def constraints() -> list[type[Plugin]]:
    """The users' own rules: classes found under the entry point group `muster.constraints`."""
    found: list[type[Plugin]] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        kind = point.load()
        if not (isinstance(kind, type) and issubclass(kind, Plugin)):
            raise BadOption(f"entry point {point.name} of {ENTRY_POINTS}: {point.value} is no Constraint class")
        found.append(kind)
    return found


def source(obj: Tree | None, names: Sequence[str] = ()) -> dict[str, Any]:
    """The configuration that is in force: the file's, with the scheduler names of the command line."""
    whole: dict[str, Any] = dict(obj) if obj is not None else {"apiVersion": API_VERSION, "kind": KIND}
    profiles: list[dict[str, Any]] = list(whole.get("profiles") or [{}])
    if names:
        if len(profiles) > 1 or profiles[0].get("schedulerName"):
            raise BadOption("--scheduler-name cannot rename the profiles of the configuration file: name them there")
        profiles = [{**profiles[0], "schedulerName": name} for name in dict.fromkeys(names)]
    whole["profiles"] = [{"schedulerName": DEFAULT_NAME, **profile} for profile in profiles]
    return whole


def config(whole: Tree) -> Config:
    """The scheduler's configuration, with the users' plugins: installed ones and those in files that it names."""
    return load(whole, extra=[*constraints(), *plugins_in(whole)], default_name=DEFAULT_NAME)


def election(whole: Tree, flags: Tree) -> Election | None:
    """How to elect a leader, or None if that is switched off."""
    given: dict[str, Any] = dict(whole.get("leaderElection") or {})
    given.update({name: value for name, value in flags.items() if value is not None})
    if not given.get("leaderElect", True):
        return None
    made = Election(
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        namespace=str(given.get("resourceNamespace") or "kube-system"),
        name=str(given.get("resourceName") or DEFAULT_NAME),
        lease_duration=seconds("leaderElection.leaseDuration", given.get("leaseDuration"), 15.0),
        renew_deadline=seconds("leaderElection.renewDeadline", given.get("renewDeadline"), 10.0),
        retry_period=seconds("leaderElection.retryPeriod", given.get("retryPeriod"), 2.0),
    )
    lock = given.get("resourceLock")
    if lock not in (None, "", "leases"):
        raise BadOption(f"leaderElection.resourceLock: {lock!r} is not supported; only leases is")
    fault = made.fault()
    if fault:
        raise BadOption(f"leaderElection: {fault}")
    return made


def seconds(field: str, value: Any, default: float) -> float:
    """A duration as Kubernetes writes it: 15s, 1m30s, 500ms; a plain number means seconds."""
    if value is None or value == "":
        return default
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    parts = _DURATION.findall(str(value))
    if not parts or "".join(number + unit for number, unit in parts) != str(value):
        raise BadOption(f"{field}: {value!r} is no duration; write for example 15s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
