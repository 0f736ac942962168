"""Runs the conformance suite with its groups as Muster's custom resources. Usage: FILE_OF_THE_RUNNER ARGUMENTS...

The scenarios stay as they are. On the way to the server a group kind goes to scheduling.muster.dev, and what a pod
says in spec.schedulingGroup becomes its label; on the way back the group's name is the native one again. What an
admission step does elsewhere Muster does a moment later, so a group counts as created when it has its priority.
"""

import asyncio
import importlib.util
import sys
import time
from typing import Any

NATIVE, OURS, LABEL = "scheduling.k8s.io", "scheduling.muster.dev", "scheduling.muster.dev/pod-group"
KINDS = ("Workload", "PodGroup", "CompositePodGroup")
VERSIONS = ("v1alpha3", "v1beta1")
FILLED_WITHIN = 5.0


def moved(text: str, source: str, target: str) -> str:
    """An API version or a path with one API group in place of the other; classes of priority stay where they are."""
    for version in VERSIONS:
        text = text.replace(f"{source}/{version}", f"{target}/{version}")
    return text


def translated(obj: Any) -> Any:
    """What is sent, as custom resources and labels."""
    if not isinstance(obj, dict) or "kind" not in obj:
        return obj
    if obj["kind"] in KINDS:
        return {**obj, "apiVersion": moved(obj["apiVersion"], NATIVE, OURS)}
    if obj["kind"] != "Pod" or "schedulingGroup" not in obj["spec"]:
        return obj
    spec = dict(obj["spec"])
    name = spec.pop("schedulingGroup")["podGroupName"]
    labels = {**(obj["metadata"].get("labels") or {}), LABEL: name}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}, "spec": spec}


def answered(body: Any) -> Any:
    """What is answered, in the native group."""
    if isinstance(body, dict) and str(body.get("apiVersion", "")).startswith(f"{OURS}/"):
        return {**body, "apiVersion": moved(body["apiVersion"], OURS, NATIVE)}
    return body


def on_custom_resources(suite: Any) -> None:
    """Make the runner speak of custom resources."""
    call, watch, post = suite.Api.call, suite.Api.watch, suite.Run.post

    async def call_ours(api: Any, method: str, path: str, body: Any = None, *rest: Any, **options: Any) -> Any:
        status, answer = await call(api, method, moved(path, NATIVE, OURS), translated(body), *rest, **options)
        return status, answered(answer)

    async def post_ours(run: Any, obj: dict[str, Any]) -> Any:
        status, answer = await post(run, obj)
        if status == 201 and obj["kind"] in ("PodGroup", "CompositePodGroup"):
            await has_priority(run.api, suite.collection_path(obj["kind"], answer["metadata"]["namespace"]), answer)
        return status, answer

    suite.Api.call = call_ours
    suite.Api.watch = lambda api, path, version: watch(api, moved(path, NATIVE, OURS), version)
    suite.Run.post = post_ours


async def has_priority(api: Any, collection: str, group: dict[str, Any]) -> None:
    """Wait until Muster has filled in a group's priority, or does not."""
    path, until = f"{collection}/{group['metadata']['name']}", time.monotonic() + FILLED_WITHIN
    while (group.get("spec") or {}).get("priority") is None and time.monotonic() < until:
        await asyncio.sleep(0.02)
        _, group = await api.call("GET", path)


def main() -> None:
    spec = importlib.util.spec_from_file_location("run_conformance", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    on_custom_resources(suite)
    sys.argv = sys.argv[1:]
    suite.main()


if __name__ == "__main__":
    main()
