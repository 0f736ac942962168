"""What a server answers to the objects of `device_cases`, in a form that two servers can be compared by."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.server.device_cases import CASES, STATUSES, UPDATES, Obj, claim, exactly

RECORDED = Path(__file__).with_name("device_answers.json")
"""The answers of kube-apiserver 1.37; `python -m tests.e2e.record_device_answers` writes them."""

PLURALS = {
    "ResourceClaim": "namespaces/default/resourceclaims",
    "ResourceClaimTemplate": "namespaces/default/resourceclaimtemplates",
    "DeviceClass": "deviceclasses",
    "ResourceSlice": "resourceslices",
    "DeviceTaintRule": "devicetaintrules",
}

Call = Callable[[str, str, Obj | None], tuple[int, Obj]]  # (method, path, body) -> code and answer


def answers(call: Call) -> dict[str, Obj]:
    """All cases sent to a server, one after the other."""
    found: dict[str, Obj] = {}
    for name, obj in CASES.items():
        found[f"create {name}"] = _told(*call("POST", _path(obj), obj))
        call("DELETE", _path(obj, named=True), None)
    for name, (before, after) in UPDATES.items():
        call("POST", _path(before), before)
        found[f"update {name}"] = _told(*call("PUT", _path(after, named=True), after))
        call("DELETE", _path(before, named=True), None)
    for name, statuses in STATUSES.items():
        found[f"status {name}"] = _statuses(call, statuses)
    return found


def _statuses(call: Call, statuses: list[Obj]) -> Obj:
    obj = claim(exactly())
    path = _path(obj, named=True)
    call("POST", _path(obj), obj)
    told: Obj = {}
    for status in statuses:
        told = _told(*call("PUT", f"{path}/status", {**obj, "status": status}))
    call("PUT", f"{path}/status", {**obj, "status": {}})
    call("DELETE", path, None)
    return told


def _path(obj: Obj, *, named: bool = False) -> str:
    base = f"/apis/resource.k8s.io/v1/{PLURALS[obj['kind']]}"
    return f"{base}/{obj['metadata']['name']}" if named else base


def _told(code: int, answer: Obj) -> Obj:
    if code >= 400:
        return {"code": code, "message": _masked(answer.get("message") or "")}
    return {"code": code, "spec": _plain(answer.get("spec")), "status": _plain(answer.get("status"))}


def _masked(message: str) -> str:
    """Without what is Go's way to print an object, the place of an error in an empty text, and times."""
    message = re.sub(r"(Invalid|Duplicate) value: ([{\[].*[}\]])(?=(: |$))", r"\1 value: {}", message)
    message = re.sub(r"^devicetaintrules\.", "DeviceTaintRule.", message)
    return message.replace("<input>:1:0:", "<input>:1:1:")


def _plain(value: Any) -> Any:
    """Without nulls and empty values, which mean the same, and with one time for all."""
    if isinstance(value, dict):
        kept = {key: _plain(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, [], {})}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return "T" if isinstance(value, str) and re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:]+Z", value) else value


def recorded() -> dict[str, Obj]:
    return json.loads(RECORDED.read_text())
