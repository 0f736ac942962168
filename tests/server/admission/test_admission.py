"""Admission through the server: namespaces, priority, protection, accounts, addresses."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.groups import COMPOSITE_PROTECTION, POD_GROUP_PROTECTION
from muster.api.resources import (
    COMPOSITE_POD_GROUPS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    Resource,
)
from muster.client.local import LocalClient
from muster.server.admission.bootstrap import bootstrap_objects
from muster.server.core import ApiServer
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore


@pytest.fixture
async def client() -> LocalClient:
    made = LocalClient(ApiServer(MemoryStore(), build_registry()))
    for resource, obj in bootstrap_objects():
        await made.create(resource, obj)
    return made


async def create(client: LocalClient, resource: Resource, name: str, spec: Any = None, **rest: Any) -> Any:
    body = {"metadata": {"name": name}, **({"spec": spec} if spec is not None else {}), **rest}
    return await client.create(resource, body, "default" if resource.namespaced else None)


async def refusal(client: LocalClient, resource: Resource, name: str, spec: Any = None, **rest: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await create(client, resource, name, spec, **rest)
    return caught.value


def pod_spec(**spec: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i"}], **spec}


def group_spec(**spec: Any) -> dict[str, Any]:
    return {"schedulingPolicy": {"gang": {"minCount": 1}}, **spec}


def composite_spec(**spec: Any) -> dict[str, Any]:
    reference = {"workloadName": "w", "templateName": "t"}
    return {"schedulingPolicy": {"gang": {"minGroupCount": 1}}, "workloadRef": reference, **spec}


GROUPS = [(POD_GROUPS, group_spec, "pod group"), (COMPOSITE_POD_GROUPS, composite_spec, "composite pod group")]


async def test_nothing_is_created_in_a_namespace_that_does_not_exist(client: LocalClient):
    with pytest.raises(ApiError) as caught:
        await client.create(PODS, {"metadata": {"name": "p"}, "spec": pod_spec()}, "nowhere")

    assert (caught.value.code, caught.value.message) == (404, 'namespaces "nowhere" not found')


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_may_not_be_deleted(client: LocalClient, name: str):
    with pytest.raises(ApiError) as caught:
        await client.delete(NAMESPACES, name)

    assert caught.value.code == 403
    assert caught.value.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_a_pod_without_a_class_has_priority_zero(client: LocalClient):
    spec = (await create(client, PODS, "p", pod_spec()))["spec"]

    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in spec


async def test_a_pod_takes_priority_and_policy_from_its_class(client: LocalClient):
    await create(client, PRIORITY_CLASSES, "meek", value=20, preemptionPolicy="Never")

    spec = (await create(client, PODS, "p", pod_spec(priorityClassName="meek")))["spec"]

    assert (spec["priority"], spec["preemptionPolicy"]) == (20, "Never")


async def test_the_default_class_is_for_those_who_name_none(client: LocalClient):
    await create(client, PRIORITY_CLASSES, "usual", value=7, globalDefault=True)

    pod = (await create(client, PODS, "p", pod_spec()))["spec"]
    group = (await create(client, POD_GROUPS, "g", group_spec()))["spec"]

    assert (pod["priorityClassName"], pod["priority"]) == ("usual", 7)
    assert (group["priorityClassName"], group["priority"]) == ("usual", 7)


async def test_there_is_one_default_class(client: LocalClient):
    await create(client, PRIORITY_CLASSES, "usual", value=7, globalDefault=True)

    error = await refusal(client, PRIORITY_CLASSES, "other", value=8, globalDefault=True)

    assert error.code == 403
    assert "PriorityClass usual is already marked as default. Only one default can exist" in error.message


async def test_a_pod_may_not_invent_its_priority(client: LocalClient):
    error = await refusal(client, PODS, "p", pod_spec(priority=9))

    assert error.code == 403
    assert error.message == (
        'pods "p" is forbidden: the integer value of priority (9) must not be provided in pod spec; priority admission '
        "controller computed 0 from the given PriorityClass name"
    )


async def test_the_system_classes_exist(client: LocalClient):
    spec = (await create(client, PODS, "p", pod_spec(priorityClassName="system-node-critical")))["spec"]

    assert spec["priority"] == 2_000_001_000


@pytest.mark.parametrize(("resource", "make", "noun"), GROUPS)
async def test_a_class_nobody_knows_is_refused(client: LocalClient, resource: Resource, make: Any, noun: str):
    error = await refusal(client, resource, "g", make(priorityClassName="gold"))

    assert error.code == 403
    assert error.message.endswith('"g" is forbidden: no PriorityClass with name gold was found')


@pytest.mark.parametrize(("resource", "make", "noun"), GROUPS)
async def test_a_group_takes_what_it_left_out_from_its_class(
    client: LocalClient, resource: Resource, make: Any, noun: str
):
    await create(client, PRIORITY_CLASSES, "meek", value=20, preemptionPolicy="Never")

    spec = (await create(client, resource, "g", make(priorityClassName="meek")))["spec"]

    assert (spec["priority"], spec["preemptionPolicy"]) == (20, "Never")


@pytest.mark.parametrize(("resource", "make", "noun"), GROUPS)
async def test_what_a_group_says_beside_its_class_must_agree(
    client: LocalClient, resource: Resource, make: Any, noun: str
):
    await create(client, PRIORITY_CLASSES, "meek", value=20, preemptionPolicy="Never")
    policy = {"priorityClassName": "meek", "preemptionPolicy": "PreemptLowerPriority"}

    number = await refusal(client, resource, "g", make(priorityClassName="meek", priority=21))
    other = await refusal(client, resource, "g", make(**policy))
    agreed = await create(client, resource, "g", make(priorityClassName="meek", priority=20, preemptionPolicy="Never"))

    assert number.code == other.code == 403
    assert f"priority set in the {noun} (21) must match the priority computed (20)" in number.message
    assert f"PreemptionPolicy (PreemptLowerPriority) must not be provided in {noun} spec" in other.message
    assert agreed["spec"]["priority"] == 20


async def test_a_group_cannot_use_a_system_class(client: LocalClient):
    error = await refusal(client, POD_GROUPS, "g", group_spec(priorityClassName="system-node-critical"))

    assert error.code == 422
    assert [cause["field"] for cause in error.details["causes"]] == ["spec.priority"]


async def test_new_groups_are_protected_once(client: LocalClient):
    group = await create(client, POD_GROUPS, "g", group_spec())
    composite = await create(client, COMPOSITE_POD_GROUPS, "c", composite_spec())
    again = await client.create(
        POD_GROUPS, {"metadata": {"name": "h", "finalizers": [POD_GROUP_PROTECTION]}, "spec": group_spec()}, "default"
    )

    assert group["metadata"]["finalizers"] == [POD_GROUP_PROTECTION]
    assert composite["metadata"]["finalizers"] == [COMPOSITE_PROTECTION]
    assert again["metadata"]["finalizers"] == [POD_GROUP_PROTECTION]


async def test_a_pod_runs_as_the_default_account(client: LocalClient):
    spec = (await create(client, PODS, "p", pod_spec()))["spec"]

    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")


async def test_an_account_that_is_named_must_exist(client: LocalClient):
    error = await refusal(client, PODS, "p", pod_spec(serviceAccountName="robot"))

    assert error.code == 403
    assert 'error looking up service account default/robot: serviceaccount "robot" not found' in error.message


async def test_a_pod_stays_on_a_lost_node_for_five_minutes(client: LocalClient):
    tolerations = (await create(client, PODS, "p", pod_spec()))["spec"]["tolerations"]

    assert [(each["key"], each["tolerationSeconds"]) for each in tolerations] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]


async def test_a_pod_that_speaks_of_lost_nodes_is_taken_at_its_word(client: LocalClient):
    everything = [{"operator": "Exists"}]

    spec = (await create(client, PODS, "p", pod_spec(tolerations=everything)))["spec"]

    assert spec["tolerations"] == everything


async def test_every_service_has_its_own_address(client: LocalClient):
    ports = {"ports": [{"port": 80}]}
    made = [(await create(client, SERVICES, f"s{index}", ports))["spec"] for index in range(5)]
    headless = (await create(client, SERVICES, "h", {"clusterIP": "None", **ports}))["spec"]

    assert len({spec["clusterIP"] for spec in made}) == 5
    assert all(spec["clusterIPs"] == [spec["clusterIP"]] for spec in made)
    assert headless["clusterIPs"] == ["None"]


async def test_a_taken_address_is_refused(client: LocalClient):
    ports = {"ports": [{"port": 80}]}
    taken = (await create(client, SERVICES, "a", ports))["spec"]["clusterIP"]

    assert (await refusal(client, SERVICES, "b", {"clusterIP": taken, **ports})).code == 422
