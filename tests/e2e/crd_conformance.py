"""Runs the conformance suite with its groups as Muster's custom resources. Usage: FILE_OF_THE_RUNNER ARGUMENTS...

The scenarios stay as they are. On the way to the server a group kind goes to scheduling.muster.dev, and what a pod
says in spec.schedulingGroup becomes its label; nothing else is touched.
"""

import importlib.util
import sys
from typing import Any

GROUP, VERSION, LABEL = "scheduling.muster.dev", "v1alpha3", "scheduling.muster.dev/pod-group"
KINDS = ("Workload", "PodGroup", "CompositePodGroup")


def translated(obj: dict[str, Any]) -> dict[str, Any]:
    if obj["kind"] in KINDS:
        return {**obj, "apiVersion": f"{GROUP}/{VERSION}"}
    if obj["kind"] != "Pod" or "schedulingGroup" not in obj["spec"]:
        return obj
    spec = dict(obj["spec"])
    name = spec.pop("schedulingGroup")["podGroupName"]
    labels = {**(obj["metadata"].get("labels") or {}), LABEL: name}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}, "spec": spec}


def main() -> None:
    spec = importlib.util.spec_from_file_location("run_conformance", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    for kind in KINDS:
        suite.KINDS[kind] = (f"/apis/{GROUP}/{VERSION}", *suite.KINDS[kind][1:])
    send = suite.Run.post

    async def post(run: Any, obj: dict[str, Any]) -> Any:
        return await send(run, translated(obj))

    suite.Run.post = post
    sys.argv = sys.argv[1:]
    suite.main()


if __name__ == "__main__":
    main()
