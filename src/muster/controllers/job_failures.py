"""Evaluates a Job's `podFailurePolicy` for a failed pod: the first rule that matches decides.

Pure. Without a rule that matches, a failure counts towards the backoff limit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from muster.controllers.objects import PodView

JSON = dict[str, Any]

COUNT, IGNORE, FAIL_JOB, FAIL_INDEX = "Count", "Ignore", "FailJob", "FailIndex"


class FailureDecision(NamedTuple):
    """The action for one failed pod, and why."""

    action: str
    message: str = ""


def decide(policy: JSON | None, pod: PodView) -> FailureDecision:
    """The action of the first rule that matches the pod."""
    for position, rule in enumerate((policy or {}).get("rules") or ()):
        why = _exit_code(rule.get("onExitCodes"), pod) or _condition(rule.get("onPodConditions"), pod)
        if why:
            action = str(rule.get("action") or COUNT)
            return FailureDecision(action, f"{why} matching {action} rule at index {position}")
    return FailureDecision(COUNT)


def _exit_code(wanted: JSON | None, pod: PodView) -> str:
    if not wanted:
        return ""
    values = wanted.get("values") or ()
    for container in pod.status.container_statuses or ():
        code = container.exit_code
        if not code or wanted.get("containerName") not in (None, container.name):
            continue
        if (code in values) == (wanted.get("operator") == "In"):
            where = f"{pod.metadata.namespace}/{pod.metadata.name}"
            return f"Container {container.name} for pod {where} failed with exit code {code}"
    return ""


def _condition(wanted: list[JSON] | None, pod: PodView) -> str:
    for pattern in wanted or ():
        status = pattern.get("status") or "True"
        for condition in pod.status.conditions or ():
            if condition.type == pattern.get("type") and condition.status == status:
                where = f"{pod.metadata.namespace}/{pod.metadata.name}"
                return f"Pod {where} has condition {condition.type}"
    return ""
