"""The scenarios of a conformance suite on a scheduler alone: no server, a virtual clock, the same decisions every time.

The suite's own runner expands the short forms of its files; a `ScenarioCluster` plays API server, admission of
priorities, kubelet and disruption controller. What a scenario expects is not checked here, only what is decided is
hashed. Each scenario runs twice: the scheduler acts after every step, and after every object.

Events and decisions are made and read by their log tags, so that this runs on any version of the code.
"""

from __future__ import annotations

import copy
import fnmatch
import importlib.util
import typing
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import yaml
from tools.decision_recorder import SCHEDULER, Entry, Recorder, find

EVENTS = ("muster.scheduler.interface.events", "muster.scheduler.events")
CONFIG = (("muster.scheduler.runtime.config", "default_config"), ("muster.scheduler.config", "default_config"))
DELETED = {"groups": "PodGroup", "composites": "CompositePodGroup", "nodes": "Node", "workloads": "Workload"}
SECONDS_OF_A_WAIT = 5.0
SECONDS_AT_THE_END = 120.0  # longer than every timer of the queue
MOST_CYCLES = 10_000

Obj = dict[str, Any]
Key = tuple[str, str, str]


def record(folder: Path) -> dict[str, Entry]:
    """Every scenario of the suite under its id and the way it was run."""
    runner = _load(folder / "run_conformance.py")
    recorder = Recorder()
    recorder.install()
    results: dict[str, Entry] = {}
    try:
        for path in sorted((folder / "scenarios").glob("*/*.yaml")):
            scenario = yaml.safe_load(path.read_text())
            for each, how in ((False, "by step"), (True, "by object")):
                with recorder.recording() as recording:
                    Scenario(runner, scenario, settle_each=each).run()
                results[f"{path.parent.name}/{path.stem} {how}"] = recording.result()
    finally:
        recorder.uninstall()
    return results


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_conformance", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.now = lambda: _time(0)  # type: ignore[attr-defined]
    return module


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"2026-01-01T{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}Z"


def merge_patch(base: Obj, patch: Obj) -> Obj:
    """RFC 7396."""
    merged = dict(base)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            held = merged.get(key)
            merged[key] = merge_patch(held if isinstance(held, dict) else {}, value)
        else:
            merged[key] = value
    return merged


class ScenarioCluster:
    """Objects as stored, a scheduler that is told of them, and a clock that moves only when asked."""

    def __init__(self) -> None:
        self.now = 0.0
        self.kubelet_runs = True
        self.objects: dict[Key, Obj] = {}
        self._serial = 0
        self._kinds = find(tuple((module, "KINDS") for module in EVENTS))
        known = typing.get_args(find(tuple((module, "Event") for module in EVENTS)))
        self._events = {event.__struct_config__.tag: event for event in known}
        self.scheduler = find(SCHEDULER)(find(CONFIG)())
        self._tell("synced")

    def _tell(self, tag: str, *values: Any) -> None:
        self.scheduler.handle(self._events[tag](*values), self.now)

    # --- objects -----------------------------------------------------------------------------------

    def create(self, obj: Obj) -> None:
        """Store a manifest as an API server would: uid, creation time, priority, status of a budget."""
        obj = copy.deepcopy(obj)
        self._serial += 1
        obj["metadata"] |= {"uid": f"uid-{self._serial}", "creationTimestamp": _time(self.now)}
        if obj["kind"] in ("Pod", "PodGroup", "CompositePodGroup"):
            self._set_priority(obj["spec"])
        if obj["kind"] == "Pod":
            obj["spec"].setdefault("schedulerName", "default-scheduler")
            running = self.kubelet_runs and obj["spec"].get("nodeName")
            obj["status"] = {"phase": "Running" if running else "Pending", "startTime": _time(self.now)}
        if obj["kind"] == "PodDisruptionBudget":
            obj["status"] = {"disruptionsAllowed": self._disruptions_allowed(obj)}
        self.put(obj)

    def put(self, obj: Obj) -> None:
        meta = obj["metadata"]
        self.objects[obj["kind"], meta.get("namespace", ""), meta["name"]] = obj
        kind = self._kinds.get(obj["kind"])
        if kind is not None:
            self._tell("changed", obj["kind"], msgspec.convert(obj, kind, strict=False))

    def patch(self, key: Key, patch: Obj) -> None:
        if key in self.objects:
            self.put(merge_patch(self.objects[key], patch))

    def remove(self, key: Key) -> None:
        obj = self.objects.pop(key, None)
        if obj is not None and key[0] in self._kinds:
            self._tell("removed", *key, obj["metadata"]["uid"])

    def _set_priority(self, spec: Obj) -> None:
        name = spec.get("priorityClassName")
        found = self.objects.get(("PriorityClass", "", name or ""), {})
        spec.setdefault("priority", found.get("value", 0))
        if "preemptionPolicy" in found:
            spec.setdefault("preemptionPolicy", found["preemptionPolicy"])

    def _disruptions_allowed(self, budget: Obj) -> int:
        wanted = budget["spec"]["selector"]["matchLabels"].items()
        healthy = 0
        for (kind, namespace, _), pod in self.objects.items():
            if kind == "Pod" and namespace == budget["metadata"]["namespace"] and pod["spec"].get("nodeName"):
                healthy += wanted <= (pod["metadata"].get("labels") or {}).items()
        return max(0, healthy - int(budget["spec"]["minAvailable"]))

    # --- time --------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Cycles until there is nothing to do at this moment; pods that are leaving go once it is quiet."""
        for _ in range(MOST_CYCLES):
            decisions = self.scheduler.next(self.now)
            for decision in decisions:
                self._carry_out(msgspec.to_builtins(decision))
            if not decisions and not self._reap():
                return
        raise RuntimeError("the scheduler does not come to rest")

    def wait(self, seconds: float) -> None:
        """Let time pass, with every timer that runs out on the way."""
        end = self.now + seconds
        self.settle()
        while (due := self.scheduler.wake_at(self.now)) is not None and due <= end:
            self.now = max(self.now, due)
            self.settle()
            if self.scheduler.wake_at(self.now) == due:
                self.now = min(end, due + 0.001)
        self.now = end
        self.settle()

    def _reap(self) -> bool:
        leaving = [key for key, obj in self.objects.items() if obj["metadata"].get("deletionTimestamp")]
        for key in leaving:
            self.remove(key)
        return bool(leaving)

    # --- decisions ---------------------------------------------------------------------------------

    def _carry_out(self, decision: Obj) -> None:
        about = decision.get("pod") or decision.get("about") or {}
        key = (about.get("kind", ""), about.get("namespace", ""), about.get("name", ""))
        if key not in self.objects:
            if decision["do"] == "bind":
                self._tell("bind-failed", about["uid"], decision["node"], "gone")
            return
        match decision["do"]:
            case "bind":
                self._tell("bound", about["uid"], decision["node"])
                phase = "Running" if self.kubelet_runs else "Pending"
                self.patch(key, {"spec": {"nodeName": decision["node"]}, "status": {"phase": phase}})
            case "nominate":
                self.patch(key, {"status": {"nominatedNodeName": decision["node"]}})
            case "condition":
                said = {name: decision[name] for name in ("type", "status", "reason", "message")}
                others = self.objects[key].get("status", {}).get("conditions") or []
                others = [each for each in others if each["type"] != said["type"]]
                self.patch(key, {"status": {"conditions": [*others, said]}})
            case "evict":
                self.patch(key, {"metadata": {"deletionTimestamp": _time(self.now)}})


class Scenario:
    """One scenario file, step by step."""

    def __init__(self, runner: ModuleType, data: Obj, *, settle_each: bool) -> None:
        self.cluster = ScenarioCluster()
        self._runner, self._data, self._settle_each = runner, data, settle_each
        options = SimpleNamespace(scheduler_name=None)
        self._builder = runner.Builder(
            SimpleNamespace(
                run_id="run",
                options=options,
                namespace=self._namespace,
                priority_class=self._class_name,
                resolve_classes=self._with_class_names,
            )
        )

    def run(self) -> None:
        data, cluster = self._data, self.cluster
        cluster.kubelet_runs = (data.get("kubelet") or {}).get("run", True)
        setup = data.get("cluster") or {}
        for name, value in (setup.get("priorityClasses") or {}).items():
            item = {"name": name, **(value if isinstance(value, dict) else {"value": value})}
            self._create([self._builder.priority_class(item)])
        for item in setup.get("nodes") or []:
            self._create(self._builder.build({"nodes": item}))
        for step in data["steps"]:
            for action, value in step.items():
                if action != "note":
                    getattr(self, f"_step_{action}")(value)
                    cluster.settle()
        cluster.wait(SECONDS_AT_THE_END)

    def _namespace(self, alias: str | None = None) -> str:
        return f"ns-{alias}" if alias else "ns"

    def _class_name(self, short: str) -> str:
        return short.removeprefix("raw:")

    def _with_class_names(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._with_class_names(held) for key, held in value.items()}
        if isinstance(value, list):
            return [self._with_class_names(held) for held in value]
        return value.replace("{pc:", "").replace("}", "") if isinstance(value, str) and "{pc:" in value else value

    def _create(self, objects: Iterable[Obj]) -> None:
        for obj in objects:
            self.cluster.create(obj)
            if self._settle_each:
                self.cluster.settle()

    def _step_create(self, entries: list[Obj] | Obj) -> None:
        for entry in entries if isinstance(entries, list) else [entries]:
            self._create(self._builder.build(entry))

    def _step_reject(self, step: Obj) -> None:
        """All but the last object of the entry are accepted."""
        about = {"status", "field", "fields", "causeReason", "messageContains"}
        self._create(self._builder.build({key: value for key, value in step.items() if key not in about})[:-1])

    def _step_patch(self, steps: list[Obj] | Obj) -> None:
        """Merge patches that the server accepts."""
        for step in steps if isinstance(steps, list) else [steps]:
            if step.get("type", "merge") == "merge" and not {"status", "field"} & step.keys():
                kind = self._runner.KIND_ALIASES[step["kind"].lower()]
                namespace = self._namespace(step.get("namespace")) if self._runner.KINDS[kind][2] else ""
                self.cluster.patch((kind, namespace, step["name"]), self._with_class_names(step["patch"]))

    def _step_delete(self, step: Obj) -> None:
        leaving = {"metadata": {"deletionTimestamp": _time(self.cluster.now)}}
        for key in self._pods(step.get("pods", [])):
            self.cluster.patch(key, leaving)
        for field, kind in DELETED.items():
            for name in self._runner.as_list(step.get(field, [])):
                namespace = self._namespace(step.get("namespace")) if self._runner.KINDS[kind][2] else ""
                self.cluster.patch((kind, namespace, name), leaving)

    def _step_finish(self, step: Obj) -> None:
        for key in self._pods(step["pods"]):
            self.cluster.patch(key, {"status": {"phase": step.get("phase", "Succeeded")}})

    def _step_ungate(self, step: Obj) -> None:
        for key in self._pods(step["pods"]):
            self.cluster.patch(key, {"spec": {"schedulingGates": None}})

    def _step_kubelet(self, step: Obj) -> None:
        self.cluster.kubelet_runs = step.get("run", self.cluster.kubelet_runs)

    def _step_wait(self, step: Obj) -> None:
        self.cluster.wait(SECONDS_OF_A_WAIT)

    def _step_hold(self, step: Obj) -> None:
        self.cluster.wait(float(step.get("seconds", 1.5)))

    def _step_expect(self, step: Obj) -> None:
        pass

    def _step_pause(self, seconds: float) -> None:
        self.cluster.wait(float(seconds))

    def _pods(self, patterns: str | list[str]) -> list[Key]:
        """Pods by glob, by `group:NAME`, or in another namespace by `@b/...`."""
        found: list[Key] = []
        for pattern in self._runner.as_list(patterns):
            alias, _, rest = pattern[1:].partition("/") if pattern.startswith("@") else ("", "", pattern)
            for key, obj in self.cluster.objects.items():
                if key[0] != "Pod" or key[1] != self._namespace(alias):
                    continue
                group = (obj["spec"].get("schedulingGroup") or {}).get("podGroupName")
                named = group == rest[6:] if rest.startswith("group:") else fnmatch.fnmatch(key[2], rest)
                if named and key not in found:
                    found.append(key)
        return found
