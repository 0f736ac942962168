"""Server-side printing: the columns and words that kubectl users know."""

from __future__ import annotations

from typing import Any

import pytest
from core_api import GROUPS, NODES, PODS, TABLE, Api

from muster.server.resources.columns import duration
from muster.testing import a_pod, a_pod_group


async def table(api: Api, path: str, **query: str) -> list[dict[str, Any]]:
    """The rows, as dictionaries by column name."""
    page = await api.ask("GET", path, accept=TABLE, **query)
    assert page.response.content_type == "application/json;as=Table;v=v1;g=meta.k8s.io"
    names = [column["name"] for column in page.body["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in page.body["rows"]]


async def test_groups_show_the_workload_that_they_were_made_for(api: Api) -> None:
    labels = {"scheduling.muster.dev/owner-kind": "JobSet", "scheduling.muster.dev/owner-name": "train"}
    for name, more in (("by-hand", {}), ("made", {"labels": labels})):
        await api.post(GROUPS, {"metadata": {"name": name, **more}, "spec": {"schedulingPolicy": {"basic": {}}}})

    assert [row["Made for"] for row in await table(api, GROUPS)] == ["<none>", "jobset/train"]


async def test_pod_groups_show_policy_members_and_status(api: Api) -> None:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
        "workloadRef": {"workloadName": "w", "templateName": "t"},
    }
    await api.post(GROUPS, {"metadata": {"name": "g"}, "spec": spec})
    for name, node in (("a", "n1"), ("b", ""), ("c", "n2")):
        bound = {"nodeName": node} if node else {}
        await api.post(PODS, a_pod(name, schedulingGroup={"podGroupName": "g"}, **bound))
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no rack has room",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await api.merge(f"{GROUPS}/g/status", {"status": {"conditions": [condition]}})
    (row,) = await table(api, GROUPS)

    assert list(row) == [
        "Name",
        "Policy",
        "Workload",
        "Members",
        "Status",
        "Age",
        "Reason",
        "Topology",
        "Priority",
        "Made for",
    ]
    assert (row["Name"], row["Policy"], row["Workload"], row["Members"]) == ("g", "Gang", "w", "2/3")
    assert (row["Status"], row["Reason"]) == ("Unschedulable", "no rack has room")
    assert row["Topology"] == "example.com/rack"


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([], "Pending"),
        ([("PodGroupInitiallyScheduled", "True", "Scheduled")], "Scheduled"),
        ([("PodGroupInitiallyScheduled", "False", "SchedulerError")], "Unschedulable"),
        (
            [
                ("PodGroupInitiallyScheduled", "True", "Scheduled"),
                ("DisruptionTarget", "True", "PreemptionByScheduler"),
            ],
            "PreemptionByScheduler",
        ),
    ],
)
async def test_the_status_of_a_group_in_one_word(api: Api, conditions: list[tuple[str, str, str]], status: str) -> None:
    await api.post(GROUPS, a_pod_group("g", min_count=2))
    entries = [
        {"type": type, "status": value, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for type, value, reason in conditions
    ]
    await api.merge(f"{GROUPS}/g/status", {"status": {"conditions": entries}})
    assert (await table(api, GROUPS))[0]["Status"] == status


async def test_pods_show_what_kubectl_users_know(api: Api) -> None:
    await api.post(PODS, a_pod("p", nodeName="n1"))
    api.clock.now += 125
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {"name": "c", "ready": True, "restartCount": 2, "image": "i", "imageID": "", "state": started}
    await api.merge(
        f"{PODS}/p/status",
        {"status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [container]}},
    )
    (row,) = await table(api, PODS)

    assert row["Ready"] == "1/1"
    assert (row["Status"], row["Restarts"], row["Age"]) == ("Running", "2", "2m5s")
    assert (row["IP"], row["Node"], row["Nominated Node"]) == ("10.0.0.1", "n1", "<none>")


async def test_a_pod_that_is_going_is_terminating(api: Api) -> None:
    await api.post(PODS, a_pod("p", nodeName="n1"))
    await api.delete(f"{PODS}/p")
    assert (await table(api, PODS))[0]["Status"] == "Terminating"


async def test_a_waiting_container_gives_the_status_its_reason(api: Api) -> None:
    await api.post(PODS, a_pod("p", nodeName="n1"))
    waiting = {"waiting": {"reason": "ImagePullBackOff"}}
    container = {"name": "c", "ready": False, "restartCount": 0, "image": "i", "imageID": "", "state": waiting}
    await api.merge(f"{PODS}/p/status", {"status": {"containerStatuses": [container]}})
    assert (await table(api, PODS))[0]["Status"] == "ImagePullBackOff"


async def test_nodes_show_readiness_roles_and_cordoning(api: Api) -> None:
    node = {
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.37.0"}},
    }
    await api.post(NODES, node)
    (row,) = await table(api, NODES)
    assert (row["Status"], row["Roles"], row["Version"]) == ("Ready,SchedulingDisabled", "worker", "v1.37.0")


async def test_rows_carry_metadata_or_the_whole_object_or_nothing(api: Api) -> None:
    await api.post(PODS, a_pod("p"))
    rows = {
        include: (await api.ask("GET", PODS, accept=TABLE, includeObject=include)).body["rows"][0]
        for include in ("Metadata", "Object", "None")
    }
    assert rows["Metadata"]["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" in rows["Object"]["object"]
    assert "object" not in rows["None"]


async def test_a_table_list_carries_revision_and_continue(api: Api) -> None:
    await api.post(PODS, a_pod("a"))
    await api.post(PODS, a_pod("b"))
    page = await api.ask("GET", PODS, accept=TABLE, limit="1")
    assert page.rv == str(api.store.revision)
    assert page.meta["continue"]


async def test_a_partial_object_is_metadata_only(api: Api) -> None:
    await api.post(PODS, a_pod("p"))
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    one = await api.ask("GET", f"{PODS}/p", accept=accept)
    many = await api.ask("GET", PODS, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
    assert (one.body["kind"], set(one.body)) == ("PartialObjectMetadata", {"kind", "apiVersion", "metadata"})
    assert many.body["kind"] == "PartialObjectMetadataList"


@pytest.mark.parametrize("path", ["/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/storage.k8s.io/v1"])
async def test_every_kind_prints_even_an_object_that_says_nothing(api: Api, path: str) -> None:
    for entry in (await api.get(path)).body["resources"]:
        if "/" not in entry["name"] and "list" in entry["verbs"]:
            page = await api.ask("GET", f"{path}/{entry['name']}", accept=TABLE)
            assert (page.code, page.body["kind"]) == (200, "Table")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (545, "9m5s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (12_660, "3h31m"),
        (86_400, "24h"),
        (180_000, "2d2h"),
        (8 * 86_400, "8d"),
        (800 * 86_400, "2y70d"),
    ],
)
def test_ages_read_as_kubectl_writes_them(seconds: int, words: str) -> None:
    assert duration(seconds) == words
