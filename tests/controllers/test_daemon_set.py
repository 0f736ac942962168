"""DaemonSets: one pod a node, taints and selectors, failures, rollouts."""

from __future__ import annotations

from typing import Any

from muster.api.groups import GroupMeta
from muster.api.resources import CONTROLLER_REVISIONS, CORE_EVENTS, DAEMON_SETS, NODES, PODS
from muster.controllers.daemon_nodes import NodeJudge, daemon_spec, pinned
from muster.controllers.objects import UnstructuredObject
from tests.controllers.conftest import World

LABELS = {"app": "agent"}


async def daemon_set(world: World, strategy: Any = None, **template: Any) -> Any:
    spec = {"containers": [{"name": "c", "image": "i"}], **template}
    body: dict[str, Any] = {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": spec},
    }
    if strategy is not None:
        body["updateStrategy"] = strategy
    return await world.create(DAEMON_SETS, "agent", spec=body)


async def cluster(world: World, *nodes: str) -> None:
    for name in nodes:
        await world.node(name, metadata={"labels": {"kubernetes.io/hostname": name}})
    await world.start("daemonset-controller")


async def by_node(world: World) -> dict[str, str]:
    """The image of each node's pod."""
    found: dict[str, str] = {}
    for pod in await world.pods():
        terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (node,) = terms["nodeSelectorTerms"][0]["matchFields"][0]["values"]
        found[node] = pod["spec"]["containers"][0]["image"]
    return found


async def run_all(world: World) -> None:
    for pod in await world.pods():
        if (pod.get("status") or {}).get("phase") != "Running":
            await world.phase(pod["metadata"]["name"], "Running", ready=True)


async def set_image(world: World, image: str) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
    await world.client.patch(DAEMON_SETS, "agent", patch, "default", type="strategic")
    await world.settle()


async def status(world: World) -> Any:
    return (await world.get(DAEMON_SETS, "agent"))["status"]


async def test_every_node_gets_a_pod_also_one_that_comes_later(world: World):
    await cluster(world, "a", "b")
    await daemon_set(world)
    await world.settle()
    assert sorted(await by_node(world)) == ["a", "b"]

    await world.node("c")
    await world.settle()
    assert sorted(await by_node(world)) == ["a", "b", "c"]
    await run_all(world)
    found = await status(world)
    assert (found["desiredNumberScheduled"], found["currentNumberScheduled"], found["numberReady"]) == (3, 3, 3)
    assert found["numberAvailable"] == 3
    assert "numberUnavailable" not in found


async def test_only_nodes_that_the_template_selects(world: World):
    await cluster(world, "a", "b")
    await daemon_set(world, nodeSelector={"kubernetes.io/hostname": "b"})
    await world.settle()
    assert sorted(await by_node(world)) == ["b"]

    await world.client.patch(NODES, "b", {"metadata": {"labels": {"kubernetes.io/hostname": "x"}}})
    await world.settle()
    assert await by_node(world) == {}


async def test_taints_keep_it_away_and_only_no_execute_drives_it_out(world: World):
    await cluster(world, "a", "b")
    await daemon_set(world)
    await world.settle()
    for name, effect in (("a", "NoSchedule"), ("b", "NoExecute")):
        await world.client.patch(NODES, name, {"spec": {"taints": [{"key": "k", "value": "v", "effect": effect}]}})
    await world.settle()
    assert sorted(await by_node(world)) == ["a"]
    assert (await status(world))["numberMisscheduled"] == 1


async def test_the_pods_of_nodes_that_are_gone_go(world: World):
    await cluster(world, "a", "b")
    await daemon_set(world)
    await world.settle()
    await world.client.delete(NODES, "b")
    await world.settle()
    assert sorted(await by_node(world)) == ["a"]


async def test_a_failed_pod_is_replaced_with_a_growing_pause(world: World):
    await cluster(world, "a")
    await daemon_set(world)
    await world.settle()
    (first,) = await world.pods()
    await world.phase(first["metadata"]["name"], "Failed")
    (second,) = await world.pods()
    assert second["metadata"]["name"] != first["metadata"]["name"]
    said = [each["message"] for each in (await world.client.list(CORE_EVENTS, "default")).items]
    name = first["metadata"]["name"]
    assert f"Found failed daemon pod default/{name} on node a, will try to kill it" in said

    await world.phase(second["metadata"]["name"], "Failed")
    assert [pod["metadata"]["name"] for pod in await world.pods()] == [second["metadata"]["name"]]
    await world.advance(1.5)
    assert [pod["metadata"]["name"] for pod in await world.pods()] != [second["metadata"]["name"]]


async def test_a_new_template_replaces_one_node_at_a_time(world: World):
    await cluster(world, "a", "b", "c")
    await daemon_set(world)
    await world.settle()
    await run_all(world)
    await set_image(world, "new")
    assert sorted((await by_node(world)).values()) == ["i", "i", "new"]
    assert (await status(world))["updatedNumberScheduled"] == 1
    await run_all(world)
    assert sorted((await by_node(world)).values()) == ["i", "new", "new"]
    await run_all(world)
    await run_all(world)
    assert sorted((await by_node(world)).values()) == ["new", "new", "new"]


async def test_with_surge_the_new_pod_starts_beside_the_old_one(world: World):
    await cluster(world, "a", "b")
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    await daemon_set(world, {"type": "RollingUpdate", "rollingUpdate": rolling})
    await world.settle()
    await run_all(world)
    await set_image(world, "new")
    images = sorted(pod["spec"]["containers"][0]["image"] for pod in await world.pods())
    assert images == ["i", "i", "new"]
    for _ in range(3):
        await run_all(world)
    images = sorted(pod["spec"]["containers"][0]["image"] for pod in await world.pods())
    assert images == ["new", "new"]


async def test_on_delete_waits_for_the_user(world: World):
    await cluster(world, "a")
    await daemon_set(world, {"type": "OnDelete"})
    await world.settle()
    await run_all(world)
    await set_image(world, "new")
    assert list((await by_node(world)).values()) == ["i"]
    (pod,) = await world.pods()
    await world.client.delete(PODS, pod["metadata"]["name"], "default")
    await world.settle()
    assert list((await by_node(world)).values()) == ["new"]


def a_node(name: str = "n", taints: Any = None) -> UnstructuredObject:
    return UnstructuredObject(GroupMeta(name=name), {"taints": taints or []})


def test_a_daemon_tolerates_what_befalls_nodes():
    spec = daemon_spec({})
    for key in ("not-ready", "unreachable"):
        taint = {"key": f"node.kubernetes.io/{key}", "effect": "NoExecute"}
        assert NodeJudge(spec).judge(a_node(taints=[taint])) == (True, True)
    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    assert NodeJudge(spec).judge(a_node(taints=[cordoned])) == (True, True)


def test_a_pinned_pod_fits_its_node_alone():
    spec = pinned({"affinity": {"podAntiAffinity": {}}}, "n")
    assert NodeJudge(spec).judge(a_node("n")).run
    assert not NodeJudge(spec).judge(a_node("m")).run
    assert "podAntiAffinity" in spec["affinity"]


async def test_a_revision_has_the_label_of_its_pods_and_sorted_keys(world: World):
    await cluster(world, "n1")
    await daemon_set(world)
    await world.settle()
    (revision,) = (await world.client.list(CONTROLLER_REVISIONS, "default")).items
    (pod,) = await world.pods()
    label = "controller-revision-hash"
    assert revision["metadata"]["labels"][label] == pod["metadata"]["labels"][label] != ""
    template = revision["data"]["spec"]["template"]
    assert list(template) == sorted(template) == ["$patch", "metadata", "spec"]
    assert list(template["spec"]) == sorted(template["spec"])


async def test_a_pod_whose_labels_were_changed_is_let_go_and_replaced(world: World):
    await cluster(world, "a")
    await daemon_set(world)
    await world.settle()
    (pod,) = await world.pods()
    await world.client.patch(PODS, pod["metadata"]["name"], {"metadata": {"labels": {"app": "other"}}}, "default")
    await world.settle()

    owners = {each["metadata"]["name"]: each["metadata"].get("ownerReferences") for each in await world.pods()}
    assert not owners.pop(pod["metadata"]["name"])
    ((made,),) = owners.values()
    assert made["name"] == "agent"
