"""The assertions of scenarios: each gives the reason why it does not hold, or None."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable
from typing import Any

Obj = dict[str, Any]
CONDITIONS = {
    "PodGroup": "PodGroupInitiallyScheduled",
    "CompositePodGroup": "CompositePodGroupInitiallyScheduled",
    "Pod": "PodScheduled",
}
KINDS = {
    "pod": "Pod",
    "group": "PodGroup",
    "composite": "CompositePodGroup",
    "node": "Node",
    "workload": "Workload",
    "job": "Job",
    "claim": "ResourceClaim",
    "jobset": "JobSet",
    "lws": "LeaderWorkerSet",
}


class Seen:
    """The objects of a scenario at one moment, by kind and name."""

    def __init__(self, objects: dict[str, list[Obj]], created_pods: Iterable[str]) -> None:
        self.objects = {kind: {each["metadata"]["name"]: each for each in found} for kind, found in objects.items()}
        self.created_pods = list(created_pods)

    def pods(self, patterns: str | list[str]) -> dict[str, Obj | None]:
        """Every pod that the scenario made under such a name, None where it is gone."""
        wanted = [patterns] if isinstance(patterns, str) else patterns
        names = [name for name in self.created_pods if any(fnmatch.fnmatchcase(name, each) for each in wanted)]
        assert names, f"no pod of the scenario is called {patterns}"
        return {name: self.objects["Pod"].get(name) for name in names}

    def count(self, pattern: str, holds: Callable[[Obj | None], bool]) -> int:
        """How many pods of such a name are so; those that a Job is yet to make are not."""
        names = [name for name in self.created_pods if fnmatch.fnmatchcase(name, pattern)]
        return sum(holds(self.objects["Pod"].get(name)) for name in names)

    def names(self, kind: str, pattern: str) -> list[str]:
        """The names that are meant: one as it is, or those that a glob finds now."""
        if "*" not in pattern:
            return [pattern]
        return [name for name in self.objects[kind] if fnmatch.fnmatchcase(name, pattern)] or [pattern]

    def domain(self, pod: Obj, key: str) -> str:
        node = self.objects["Node"].get(pod["spec"].get("nodeName", ""), {})
        return (node.get("metadata", {}).get("labels") or {}).get(key, "")


def failure(seen: Seen, assertions: Obj) -> str | None:
    """The first assertion that does not hold, with the reason."""
    for name, expected in assertions.items():
        if name not in ("timeout", "seconds"):
            reason = CHECKS[name](seen, expected)
            if reason:
                return f"{name}: {reason}"
    return None


def is_alive(pod: Obj | None) -> bool:
    return pod is not None and not pod["metadata"].get("deletionTimestamp")


def is_bound(pod: Obj | None) -> bool:
    return pod is not None and is_alive(pod) and bool(pod["spec"].get("nodeName"))


def _all(seen: Seen, patterns: Any, holds: Callable[[Obj | None], bool]) -> str | None:
    wrong = [name for name, pod in seen.pods(patterns).items() if not holds(pod)]
    return f"not so for {', '.join(wrong)}" if wrong else None


def _count(seen: Seen, counts: Obj, holds: Callable[[Obj | None], bool]) -> str | None:
    for pattern, wanted in counts.items():
        have = seen.count(pattern, holds)
        if have not in (wanted if isinstance(wanted, list) else [wanted]):
            return f"{have} of {pattern}, expected {wanted}"
    return None


def condition_of(obj: Obj, kind: str) -> Obj | None:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), None)


def _condition(seen: Seen, wanted: Obj | list[Obj]) -> str | None:
    for each in wanted if isinstance(wanted, list) else [wanted]:
        kind = KINDS[each.get("kind", "group")]
        names = seen.pods(each["name"]) if kind == "Pod" else seen.names(kind, each["name"])
        for name in names:
            reason = _one_condition(seen, each, kind, name)
            if reason:
                return f"{kind} {name} {reason}"
    return None


def _one_condition(seen: Seen, wanted: Obj, kind: str, name: str) -> str | None:
    obj = seen.objects[kind].get(name)
    found = condition_of(obj, wanted.get("type", CONDITIONS.get(kind))) if obj is not None else None
    if wanted.get("absent"):
        return f"has {found}" if found is not None else None
    if found is None:
        return "has no such condition"
    same = found["status"] == wanted.get("status", "True") and wanted.get("reason") in (None, found.get("reason"))
    text = wanted.get("messageContains", "")
    return None if same and text in (found.get("message") or "") else f"has {found}"


def _object(seen: Seen, wanted: Obj | list[Obj]) -> str | None:
    for each in wanted if isinstance(wanted, list) else [wanted]:
        kind = KINDS[each["kind"]]
        value: Any = seen.objects[kind].get(seen.names(kind, each["name"])[0])
        for step in each["path"].split("."):
            value = value.get(step) if isinstance(value, dict) else None
        expected = each.get("equals")
        if value not in ((None, "", [], {}) if each.get("absent") else (expected,)):
            return f"{each['name']} {each['path']} is {value!r}, expected {expected!r}"
    return None


def _same_domain(seen: Seen, wanted: Obj) -> str | None:
    values = {seen.domain(pod, wanted["key"]) for pod in seen.pods(wanted["pods"]).values() if pod and is_bound(pod)}
    return None if len(values) == 1 and "" not in values else f"in {sorted(values)}"


def _events(seen: Seen, wanted: Obj | list[Obj]) -> str | None:
    """So many events about each of these objects, whose notes contain a text."""
    for each in wanted if isinstance(wanted, list) else [wanted]:
        kind = KINDS[each.get("kind", "group")]
        names = list(seen.pods(each["name"])) if kind == "Pod" else [each["name"]]
        for name in names:
            notes = [event["note"] for event in seen.objects["Event"].values() if _is_about(event, kind, name, each)]
            if len(notes) != each.get("count", 1):
                return f"{len(notes)} about {kind} {name}: {notes}"
    return None


def _is_about(event: Obj, kind: str, name: str, wanted: Obj) -> bool:
    about = event.get("regarding") or {}
    same = (about.get("kind"), about.get("name")) == (kind, name) and wanted.get("reason") in (None, event["reason"])
    return same and wanted.get("messageContains", "") in event.get("note", "")


def _any_of(seen: Seen, options: list[Obj]) -> str | None:
    reasons = [failure(seen, option) for option in options]
    return None if None in reasons else " | ".join(map(str, reasons))


def _is_unschedulable(pod: Obj | None) -> bool:
    found = condition_of(pod, "PodScheduled") if pod is not None else None
    return found is not None and found["status"] == "False"


def _claims(seen: Seen, counts: Obj, holds: Callable[[Obj], bool]) -> str | None:
    for pattern, wanted in counts.items():
        named = seen.objects["ResourceClaim"].items()
        have = sum(holds(claim) for name, claim in named if fnmatch.fnmatchcase(name, pattern))
        if have != wanted:
            return f"{have} of {pattern}, expected {wanted}"
    return None


def _is_allocated(claim: Obj) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))


CHECKS: dict[str, Callable[[Seen, Any], str | None]] = {
    "claims": lambda seen, what: _claims(seen, what, lambda claim: True),
    "allocated": lambda seen, what: _claims(seen, what, _is_allocated),
    "scheduled": lambda seen, pods: _all(seen, pods, is_bound),
    "pending": lambda seen, pods: _all(seen, pods, lambda pod: is_alive(pod) and not is_bound(pod)),
    "unschedulable": lambda seen, pods: _all(seen, pods, _is_unschedulable),
    "alive": lambda seen, pods: _all(seen, pods, is_alive),
    "gone": lambda seen, pods: _all(seen, pods, lambda pod: pod is None),
    "bound": lambda seen, counts: _count(seen, counts, is_bound),
    "survivors": lambda seen, counts: _count(seen, counts, is_alive),
    "condition": _condition,
    "object": _object,
    "sameDomain": _same_domain,
    "events": _events,
    "anyOf": _any_of,
}
