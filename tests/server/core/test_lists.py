"""Lists: consistent, selected, paged, and at the revision that was asked for."""

from __future__ import annotations

import asyncio

import pytest
from core_api import CONFIG_MAPS, PODS, Api, a_config_map
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.build.examples import examples

from muster.server import object_lister
from muster.server.store import table as store_table
from muster.testing import a_pod


async def many(api: Api, count: int) -> None:
    for index in range(count):
        await api.post(CONFIG_MAPS, {"metadata": {"name": f"c{index:03}", "labels": {"even": str(index % 2 == 0)}}})


async def test_items_of_a_list_carry_no_kind_and_the_list_the_revision(api: Api) -> None:
    await many(api, 2)
    listed = await api.get(CONFIG_MAPS)

    assert listed.body["kind"] == "ConfigMapList"
    assert listed.rv == str(api.store.revision)
    assert all("kind" not in item and "apiVersion" not in item for item in listed.body["items"])


async def test_an_empty_list_has_an_empty_array(api: Api) -> None:
    assert (await api.get(CONFIG_MAPS)).body["items"] == []


async def test_a_list_over_all_namespaces_is_sorted_by_namespace_and_name(api: Api) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    for namespace, name in (("default", "x"), ("a", "z"), ("a", "y")):
        await api.post(f"/api/v1/namespaces/{namespace}/configmaps", a_config_map(name))
    listed = await api.get("/api/v1/configmaps")
    assert [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in listed.body["items"]] == [
        ("a", "y"),
        ("a", "z"),
        ("default", "x"),
    ]


async def test_pages_show_one_revision_whatever_happens_between_them(api: Api) -> None:
    await many(api, 5)
    first = await api.get(CONFIG_MAPS, limit="2")
    await api.delete(f"{CONFIG_MAPS}/c003")
    await api.post(CONFIG_MAPS, a_config_map("c0025"))
    await api.merge(f"{CONFIG_MAPS}/c004", {"data": {"new": "1"}})
    second = await api.get(CONFIG_MAPS, limit="2", **{"continue": first.meta["continue"]})
    third = await api.get(CONFIG_MAPS, limit="2", **{"continue": second.meta["continue"]})

    assert first.names + second.names + third.names == ["c000", "c001", "c002", "c003", "c004"]
    assert first.rv == second.rv == third.rv
    assert first.meta["remainingItemCount"] == 3
    assert "data" not in third.body["items"][0]
    assert "continue" not in third.meta


async def test_a_page_that_ends_exactly_has_no_continue(api: Api) -> None:
    await many(api, 2)
    assert "continue" not in (await api.get(CONFIG_MAPS, limit="2")).meta


async def test_remaining_items_are_not_counted_under_a_selector(api: Api) -> None:
    await many(api, 6)
    page = await api.get(CONFIG_MAPS, limit="1", labelSelector="even=True")
    assert page.names == ["c000"]
    assert "remainingItemCount" not in page.meta


async def test_an_expired_continue_is_410_with_a_token_for_the_rest(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_table, "KEEP_AT_LEAST", 1)
    await many(api, 4)
    first = await api.get(CONFIG_MAPS, limit="2")
    for value in range(3):
        await api.merge(f"{CONFIG_MAPS}/c000", {"data": {"v": str(value)}})
    api.store.table("configmaps").trim(api.clock.now + 1000)
    expired = await api.get(CONFIG_MAPS, limit="2", **{"continue": first.meta["continue"]})
    rest = await api.get(CONFIG_MAPS, limit="2", **{"continue": expired.meta["continue"]})

    assert (expired.code, expired.body["reason"]) == (410, "Expired")
    assert rest.names == ["c002", "c003"]


async def test_a_garbled_continue_is_a_bad_request(api: Api) -> None:
    for token in ("nonsense", "e30", "!!!"):
        assert (await api.get(CONFIG_MAPS, **{"continue": token})).code == 400


async def test_a_list_at_an_exact_revision_shows_the_past(api: Api) -> None:
    await many(api, 2)
    past = api.store.revision
    await api.delete(f"{CONFIG_MAPS}/c000")

    exact = await api.get(CONFIG_MAPS, resourceVersion=str(past), resourceVersionMatch="Exact")
    limited = await api.get(CONFIG_MAPS, resourceVersion=str(past), limit="10")
    newer = await api.get(CONFIG_MAPS, resourceVersion=str(past), resourceVersionMatch="NotOlderThan")
    any_ = await api.get(CONFIG_MAPS, resourceVersion="0")

    assert (exact.names, exact.rv) == (["c000", "c001"], str(past))
    assert limited.names == ["c000", "c001"]
    assert newer.names == any_.names == ["c001"]


async def test_an_exact_revision_that_is_too_old_is_410(api: Api) -> None:
    await many(api, 3)
    api.store.table("configmaps").floor = api.store.revision - 1
    gone = await api.get(CONFIG_MAPS, resourceVersion="5", resourceVersionMatch="Exact")
    assert (gone.code, gone.body["reason"]) == (410, "Expired")


async def test_a_future_revision_is_waited_for_and_then_504(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_lister, "FUTURE_WAIT_SECONDS", 0.2)
    future = str(api.store.revision + 1)
    refused = await api.get(CONFIG_MAPS, resourceVersion=future)
    waiting = asyncio.ensure_future(api.get(CONFIG_MAPS, resourceVersion=future))
    await asyncio.sleep(0)
    await api.post(CONFIG_MAPS, a_config_map("a"))

    assert (refused.code, refused.body["reason"]) == (504, "Timeout")
    assert "Too large resource version" in refused.body["message"]
    assert refused.body["details"]["retryAfterSeconds"] == 1
    assert refused.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert (await waiting).names == ["a"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422),
        ({"resourceVersionMatch": "Sometimes", "resourceVersion": "1"}, 422),
        ({"resourceVersion": "abc"}, 400),
        ({"resourceVersion": "-1"}, 400),
        ({"limit": "many"}, 400),
        ({"sendInitialEvents": "true"}, 422),
        ({"labelSelector": "a in ("}, 400),
        ({"labelSelector": "a==b==c"}, 400),
        ({"fieldSelector": "spec.nothing=1"}, 400),
        ({"fieldSelector": "nonsense"}, 400),
    ],
)
async def test_combinations_that_make_no_sense_are_refused(api: Api, query: dict[str, str], code: int) -> None:
    assert (await api.get(CONFIG_MAPS, **query)).code == code


async def test_an_unsupported_field_is_refused_in_kubernetes_words(api: Api) -> None:
    refused = await api.get(PODS, fieldSelector="spec.color=red")
    assert refused.body["message"].endswith("field label not supported: spec.color")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("spec.nodeName=n1", ["b"]),
        ("spec.nodeName!=n1", ["a"]),
        ("spec.nodeName=", ["a"]),
        ("status.phase=Pending", ["a", "b"]),
        ("metadata.name=a,metadata.namespace=default", ["a"]),
        ("spec.schedulerName=default-scheduler,spec.nodeName=n1", ["b"]),
        ("spec.schedulingGroup.podGroupName=g", ["b"]),
    ],
)
async def test_pods_are_selected_by_field(api: Api, selector: str, names: list[str]) -> None:
    await api.post(PODS, a_pod("a"))
    await api.post(PODS, a_pod("b", nodeName="n1", schedulingGroup={"podGroupName": "g"}))
    assert (await api.get(PODS, fieldSelector=selector)).names == names


async def test_selectors_still_work_on_records_read_back_from_bytes(api: Api) -> None:
    await api.post(PODS, a_pod("a", labels={"x": "y"}, nodeName="n1"))
    for record in api.store.table("pods").scan():
        record.labels = record.fields = None
    assert (await api.get(PODS, labelSelector="x=y", fieldSelector="spec.nodeName=n1")).names == ["a"]


async def test_events_are_selected_and_shown_in_both_groups(api: Api) -> None:
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    old = "/api/v1/namespaces/default/events"
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default", "uid": "u"},
        "note": "hello",
        "reason": "Scheduled",
        "type": "Normal",
        "action": "Binding",
        "reportingController": "muster",
        "reportingInstance": "muster-1",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }
    made = await api.post(new, event)
    core = await api.get(old, fieldSelector="involvedObject.name=p,involvedObject.uid=u,reason=Scheduled")
    other = await api.get(new, fieldSelector="regarding.name=q")

    assert made.code == 201
    assert core.names == ["e"]
    assert core.body["items"][0]["message"] == "hello"
    assert core.body["items"][0]["reportingComponent"] == "muster"
    assert other.names == []
    assert (await api.get(f"{new}/e")).body["note"] == "hello"


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.sampled_from(["add", "del", "set"]), max_size=12), st.integers(1, 4))
def test_paging_through_any_history_equals_the_list_at_its_first_page(steps: list[str], limit: int) -> None:
    async def scenario() -> None:
        api = await Api().start()
        await many(api, 6)
        page = await api.get(CONFIG_MAPS, limit=str(limit))
        whole = await api.get(CONFIG_MAPS)
        items = page.body["items"]
        for index, step in enumerate(steps):
            if step == "add":
                await api.post(CONFIG_MAPS, a_config_map(f"c00{index % 10}x"))
            elif step == "del":
                await api.delete(f"{CONFIG_MAPS}/c00{index % 6}")
            else:
                await api.merge(f"{CONFIG_MAPS}/c00{index % 6}", {"data": {"s": str(index)}})
            if token := page.meta.get("continue"):
                page = await api.get(CONFIG_MAPS, limit=str(limit), **{"continue": token})
                items = items + page.body["items"]
        while token := page.meta.get("continue"):
            page = await api.get(CONFIG_MAPS, limit=str(limit), **{"continue": token})
            items = items + page.body["items"]
        assert items == whole.body["items"]

    asyncio.run(scenario())
