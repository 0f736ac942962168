"""Deleting: at once, gracefully, behind finalizers; and eviction, which asks first."""

from __future__ import annotations

import pytest
from core_api import CONFIG_MAPS, GROUPS, PODS, Api, a_config_map

from muster.server import metadata
from muster.testing import a_pod, a_pod_group

RUNNING = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


async def a_bound_pod(api: Api, name: str = "p", **spec: object) -> None:
    await api.post(PODS, a_pod(name, labels={"app": "x"}, nodeName="n1", **spec))
    await api.merge(f"{PODS}/{name}/status", RUNNING)


async def test_deleting_answers_with_a_status_that_names_the_object(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, a_config_map("a"))
    gone = await api.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Background"})

    assert (gone.code, gone.body["status"]) == (200, "Success")
    assert gone.body["details"] == {"name": "a", "kind": "configmaps", "uid": made.meta["uid"]}
    missing = await api.get(f"{CONFIG_MAPS}/a")
    assert (missing.code, missing.body["message"]) == (404, 'configmaps "a" not found')
    assert (await api.delete(f"{CONFIG_MAPS}/a")).code == 404


async def test_an_unbound_pod_goes_at_once_and_is_the_answer(api: Api) -> None:
    await api.post(PODS, a_pod("p"))
    gone = await api.delete(f"{PODS}/p")

    assert gone.body["kind"] == "Pod"
    assert (await api.get(f"{PODS}/p")).code == 404


async def test_a_running_pod_gets_time_to_stop(api: Api) -> None:
    await a_bound_pod(api, terminationGracePeriodSeconds=45)
    asked = await api.delete(f"{PODS}/p")

    assert asked.meta["deletionGracePeriodSeconds"] == 45
    assert asked.meta["deletionTimestamp"] == metadata.timestamp(api.clock.now + 45)
    assert (await api.get(f"{PODS}/p")).code == 200


async def test_a_second_delete_may_shorten_the_wait_but_not_lengthen_it(api: Api) -> None:
    await a_bound_pod(api)
    await api.delete(f"{PODS}/p", gracePeriodSeconds="20")
    longer = await api.delete(f"{PODS}/p", gracePeriodSeconds="60")
    shorter = await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})
    gone = await api.delete(f"{PODS}/p", gracePeriodSeconds="0")

    assert longer.meta["deletionGracePeriodSeconds"] == 20
    assert shorter.meta["deletionGracePeriodSeconds"] == 5
    assert gone.code == 200
    assert (await api.get(f"{PODS}/p")).code == 404


async def test_a_pod_that_has_ended_goes_at_once(api: Api) -> None:
    await a_bound_pod(api)
    await api.merge(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
    await api.delete(f"{PODS}/p")
    assert (await api.get(f"{PODS}/p")).code == 404


async def test_a_finalizer_holds_the_object_until_it_is_removed(api: Api) -> None:
    await api.post(GROUPS, a_pod_group("g", min_count=2))
    asked = await api.delete(f"{GROUPS}/g")
    held = await api.get(f"{GROUPS}/g")
    freed = await api.merge(f"{GROUPS}/g", {"metadata": {"finalizers": []}})

    assert asked.meta["deletionTimestamp"] == metadata.timestamp(api.clock.now)
    assert asked.meta["deletionGracePeriodSeconds"] == 0
    assert held.code == 200
    assert freed.code == 200
    assert (await api.get(f"{GROUPS}/g")).code == 404


async def test_no_finalizer_can_be_added_to_an_object_that_is_going(api: Api) -> None:
    await api.post(CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    await api.delete(f"{CONFIG_MAPS}/a")
    refused = await api.merge(
        f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    )

    assert refused.code == 422
    assert "no new finalizers can be added if the object is being deleted" in refused.body["message"]


@pytest.mark.parametrize(
    ("policy", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)]
)
async def test_the_propagation_policy_becomes_a_finalizer(api: Api, policy: str, finalizers: list[str] | None) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    await api.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": policy})
    left = await api.get(f"{CONFIG_MAPS}/a")

    if finalizers is None:
        assert left.code == 404
    else:
        assert left.meta["finalizers"] == finalizers
        assert "deletionTimestamp" in left.meta


async def test_orphan_dependents_is_understood_and_excludes_a_policy(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    both = await api.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Orphan", "orphanDependents": True})
    unknown = await api.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Sideways"})
    await api.delete(f"{CONFIG_MAPS}/a", {"orphanDependents": True})

    assert (both.code, unknown.code) == (422, 422)
    assert (await api.get(f"{CONFIG_MAPS}/a")).meta["finalizers"] == ["orphan"]


async def test_preconditions_must_hold(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, a_config_map("a"))
    other = await api.delete(f"{CONFIG_MAPS}/a", {"preconditions": {"uid": "other"}})
    older = await api.delete(f"{CONFIG_MAPS}/a", {"preconditions": {"resourceVersion": "1"}})
    right = await api.delete(
        f"{CONFIG_MAPS}/a", {"preconditions": {"uid": made.meta["uid"], "resourceVersion": made.rv}}
    )

    assert (other.code, older.code, right.code) == (409, 409, 200)
    assert "the UID in the precondition (other) does not match the UID in record" in other.body["message"]


async def test_deleting_a_collection_takes_what_is_selected(api: Api) -> None:
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        await api.post(CONFIG_MAPS, {"metadata": {"name": name, "labels": {"l": label}}})
    gone = await api.delete(CONFIG_MAPS, labelSelector="l=x")

    assert (gone.body["kind"], gone.names) == ("ConfigMapList", ["a", "c"])
    assert (await api.get(CONFIG_MAPS)).names == ["b"]


async def test_a_namespace_waits_for_its_finalizer(api: Api) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    asked = await api.delete("/api/v1/namespaces/team")
    refused = await api.post("/api/v1/namespaces/team/configmaps", a_config_map("a"))
    empty = {**asked.body, "spec": {"finalizers": []}}
    freed = await api.put("/api/v1/namespaces/team/finalize", empty)

    assert asked.body["status"]["phase"] == "Terminating"
    assert (refused.code, refused.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    assert freed.code == 200
    assert (await api.get("/api/v1/namespaces/team")).code == 404


# Eviction


async def a_budget(api: Api, allowed: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    await api.post(BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 1 + allowed,
        "desiredHealthy": 1,
        "expectedPods": 2,
        "observedGeneration": 1,
    }
    await api.merge(f"{BUDGETS}/b/status", {"status": status})


def an_eviction(name: str = "p", **options: object) -> dict[str, object]:
    body: dict[str, object] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return {**body, "deleteOptions": options} if options else body


async def test_an_eviction_says_so_on_the_pod_and_deletes_it(api: Api) -> None:
    await a_bound_pod(api)
    evicted = await api.post(f"{PODS}/p/eviction", an_eviction())
    pod = await api.get(f"{PODS}/p")

    assert (evicted.code, evicted.body["status"]) == (201, "Success")
    assert "deletionTimestamp" in pod.meta
    target = [entry for entry in pod.body["status"]["conditions"] if entry["type"] == "DisruptionTarget"]
    assert target[0]["reason"] == "EvictionByEvictionAPI"


async def test_a_budget_without_room_refuses_an_eviction_with_429(api: Api) -> None:
    await a_bound_pod(api)
    await a_budget(api, allowed=0)
    refused = await api.post(f"{PODS}/p/eviction", an_eviction())

    assert (refused.code, refused.body["reason"]) == (429, "TooManyRequests")
    assert refused.body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert "Retry-After" not in refused.response.headers, "clients would try again by themselves, for minutes"
    assert "deletionTimestamp" not in (await api.get(f"{PODS}/p")).meta


async def test_a_budget_that_is_not_counted_yet_says_when_to_try_again(api: Api) -> None:
    await a_bound_pod(api)
    await a_budget(api, allowed=1)
    await api.merge(f"{BUDGETS}/b", {"spec": {"minAvailable": 2}})
    refused = await api.post(f"{PODS}/p/eviction", an_eviction())
    assert (refused.code, refused.response.headers["Retry-After"]) == (429, "10")


async def test_an_eviction_is_charged_to_the_budget(api: Api) -> None:
    await a_bound_pod(api, "p")
    await a_bound_pod(api, "q")
    await a_budget(api, allowed=1)

    assert (await api.post(f"{PODS}/p/eviction", an_eviction("p"))).code == 201
    assert (await api.post(f"{PODS}/q/eviction", an_eviction("q"))).code == 429


async def test_a_dry_eviction_deletes_nothing(api: Api) -> None:
    await a_bound_pod(api)
    before = api.store.revision
    dry = await api.post(f"{PODS}/p/eviction", an_eviction(dryRun=["All"]))
    assert (dry.code, api.store.revision) == (201, before)
