"""A stored definition is served at once: its objects, discovery, OpenAPI; and it goes with its definition."""

from __future__ import annotations

import asyncio

from muster.server.request import WatchStream
from muster.server.store.memory import MemoryStore
from tests.server.core.core_api import TABLE, Api
from tests.server.custom_resources.custom_api import (
    DEFINITIONS,
    a_definition,
    a_version,
    a_widget,
    defined,
    widgets,
)

SIZED = {"size": {"type": "integer", "default": 3}, "color": {"type": "string"}}


async def test_before_the_definition_there_is_nothing() -> None:
    api = await Api().start()

    assert (await api.get(widgets())).code == 404


async def test_the_first_request_after_the_definition_finds_the_kind_established() -> None:
    api = await Api().start()

    definition = await api.post(DEFINITIONS, a_definition())

    states = {each["type"]: each["status"] for each in definition.body["status"]["conditions"]}
    assert states == {"NamesAccepted": "True", "Established": "True"}
    assert definition.body["status"]["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert definition.body["status"]["storedVersions"] == ["v1"]
    listed = await api.get(widgets())
    assert (listed.code, listed.body["kind"], listed.body["items"]) == (200, "WidgetList", [])


async def test_all_verbs_work_on_objects() -> None:
    api = await defined(a_version(spec=SIZED))
    made = await api.post(widgets(), a_widget(spec={"color": "red"}))
    assert made.code == 201
    assert made.body["spec"] == {"color": "red", "size": 3}
    assert made.meta["generation"] == 1

    patched = await api.merge(f"{widgets()}/w", {"spec": {"size": 5}})
    assert (patched.body["spec"]["size"], patched.meta["generation"]) == (5, 2)
    put = await api.put(f"{widgets()}/w", {**patched.body, "spec": {"size": 7}})
    assert put.body["spec"] == {"size": 7}
    assert (await api.get(f"{widgets()}/w")).body["spec"] == {"size": 7}
    listed = await api.get(widgets())
    assert [item["kind"] for item in listed.body["items"]] == ["Widget"]
    assert (await api.delete(f"{widgets()}/w")).code == 200
    assert (await api.get(f"{widgets()}/w")).code == 404


async def test_an_update_must_say_which_version_it_is_of() -> None:
    api = await defined()
    await api.post(widgets(), a_widget())

    answer = await api.put(f"{widgets()}/w", a_widget())

    assert answer.code == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.text


async def test_a_strategic_merge_patch_is_not_for_custom_kinds() -> None:
    api = await defined()
    await api.post(widgets(), a_widget())

    answer = await api.ask("PATCH", f"{widgets()}/w", {"spec": {}}, content="application/strategic-merge-patch+json")

    assert answer.code == 415


async def test_unknown_fields_are_dropped_with_a_warning_or_refused() -> None:
    api = await defined(a_version(spec=SIZED))

    warned = await api.post(widgets(), a_widget(spec={"shape": "round", "size": 1}))
    strict = await api.post(widgets(), a_widget("x", spec={"shape": "round"}), fieldValidation="Strict")

    assert (warned.code, warned.warnings) == (201, ['unknown field "spec.shape"'])
    assert warned.body["spec"] == {"size": 1}
    assert strict.code == 400
    assert (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.shape"'
        in (strict.text.replace('\\"', '"'))
    )


async def test_a_default_that_came_later_is_shown_of_objects_stored_before() -> None:
    api = await defined(a_version(spec={"color": {"type": "string"}, "old": {"type": "string"}}))
    await api.post(widgets(), a_widget(spec={"color": "red", "old": "x"}))
    definition = (await api.get(f"{DEFINITIONS}/widgets.example.com")).body
    definition["spec"]["versions"] = [a_version(spec=SIZED)]

    assert (await api.put(f"{DEFINITIONS}/widgets.example.com", definition)).code == 200

    assert (await api.get(f"{widgets()}/w")).body["spec"] == {"color": "red", "size": 3}
    assert (await api.get(widgets())).body["items"][0]["spec"] == {"color": "red", "size": 3}


async def test_a_watch_sees_the_first_object() -> None:
    api = await defined()
    stream = await api.raw("GET", widgets(), watch="true", timeoutSeconds="5")
    assert isinstance(stream, WatchStream)
    first = asyncio.create_task(anext(aiter(stream.frames)))

    await api.post(widgets(), a_widget(spec={}))

    frame = await asyncio.wait_for(first, 5)
    assert frame.startswith(b'{"type":"ADDED","object":{"kind":"Widget","apiVersion":"example.com/v1"')


async def test_status_and_scale_are_endpoints_of_their_own() -> None:
    replicas = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.sel",
    }
    api = await defined(a_version(spec=SIZED, subresources={"status": {}, "scale": replicas}))
    made = await api.post(widgets(), a_widget(spec={"size": 2}, status={"size": 9}))
    assert "status" not in made.body

    status = await api.merge(f"{widgets()}/w/status", {"spec": {"size": 8}, "status": {"size": 2, "sel": "a=b"}})
    assert (status.body["spec"], status.body["status"]) == ({"size": 2}, {"size": 2, "sel": "a=b"})
    assert status.meta["generation"] == 1
    scale = await api.get(f"{widgets()}/w/scale")
    assert (scale.body["spec"], scale.body["status"]) == ({"replicas": 2}, {"replicas": 2, "selector": "a=b"})
    scaled = await api.merge(f"{widgets()}/w/scale", {"spec": {"replicas": 4}})
    assert scaled.body["spec"] == {"replicas": 4}
    assert (await api.get(f"{widgets()}/w")).body["spec"] == {"size": 4}


async def test_without_a_status_endpoint_the_status_is_a_field_like_others() -> None:
    version = a_version()
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = {
        "type": "object",
        "properties": {"ready": {"type": "boolean"}},
    }
    api = await defined(version)

    made = await api.post(widgets(), a_widget(status={"ready": True}))
    changed = await api.merge(f"{widgets()}/w", {"status": {"ready": False}})

    assert made.body["status"] == {"ready": True}
    assert changed.meta["generation"] == 2
    assert (await api.get(f"{widgets()}/w/status")).code == 404


async def test_printer_columns_and_selectable_fields() -> None:
    columns = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    api = await defined(
        a_version(spec=SIZED, additionalPrinterColumns=columns, selectableFields=[{"jsonPath": ".spec.color"}])
    )
    await api.post(widgets(), a_widget("r", spec={"color": "red"}))
    await api.post(widgets(), a_widget("g", spec={"color": "green"}))

    table = (await api.get(widgets(), accept=TABLE)).body
    assert [(each["name"], each["priority"]) for each in table["columnDefinitions"]] == [
        ("Name", 0),
        ("Color", 0),
        ("Size", 1),
        ("Age", 0),
    ]
    assert [row["cells"] for row in table["rows"]] == [["g", "green", 3, "0s"], ["r", "red", 3, "0s"]]
    assert (await api.get(widgets(), fieldSelector="spec.color=red")).names == ["r"]
    assert (await api.get(widgets(), fieldSelector="spec.size=3")).code == 400


async def test_versions_without_conversion_differ_in_name_and_schema_only() -> None:
    beta = a_version("v1beta1", {"color": {"type": "string"}}, storage=False)
    api = await defined(a_version(spec=SIZED), beta)
    await api.post(widgets("v1beta1"), a_widget("b", "v1beta1", spec={"color": "blue", "size": 1}))

    assert (await api.get(f"{widgets('v1beta1')}/b")).body["spec"] == {"color": "blue"}
    stable = (await api.get(f"{widgets()}/b")).body
    assert (stable["apiVersion"], stable["spec"]) == ("example.com/v1", {"color": "blue", "size": 3})


async def test_discovery_and_openapi_follow_at_once() -> None:
    api = await Api().start()
    await api.get("/apis")
    await api.get("/openapi/v3")
    names = {"shortNames": ["wd"], "categories": ["all"]}
    await api.post(DEFINITIONS, a_definition(a_version(spec=SIZED, subresources={"status": {}}), names=names))

    groups = (await api.get("/apis")).body["groups"]
    assert [each["name"] for each in groups if each["name"] == "example.com"]
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    items = (await api.get("/apis", accept=aggregated)).body["items"]
    found = next(each for each in items if each["metadata"].get("name") == "example.com")["versions"][0]["resources"][0]
    assert (found["shortNames"], found["categories"]) == (["wd"], ["all"])
    resources = (await api.get("/apis/example.com/v1")).body["resources"]
    assert [each["name"] for each in resources] == ["widgets", "widgets/status"]
    assert "apis/example.com/v1" in (await api.get("/openapi/v3")).body["paths"]
    document = (await api.get("/openapi/v3/apis/example.com/v1")).body["components"]["schemas"]
    widget = document["com.example.v1.Widget"]
    assert widget["properties"]["spec"]["properties"]["size"] == {"type": "integer", "default": 3}
    patch = (await api.get("/openapi/v3/apis/example.com/v1")).body["paths"][
        f"{widgets(namespace='{namespace}')}/{{name}}"
    ]
    assert "application/strategic-merge-patch+json" not in patch["patch"]["requestBody"]["content"]
    assert widget["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Widget", "version": "v1"}]


async def test_server_side_apply_knows_the_lists_of_the_schema() -> None:
    item = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    }
    parts = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    api = await defined(a_version(spec={"parts": parts}))

    async def applied(manager: str, *parts: dict[str, object]) -> list[dict[str, object]]:
        body = a_widget(spec={"parts": list(parts)})
        kind = "application/apply-patch+yaml"
        answer = await api.ask("PATCH", f"{widgets()}/w", body, content=kind, fieldManager=manager)
        assert answer.code in (200, 201), answer.text
        return answer.body["spec"]["parts"]

    await applied("one", {"name": "a", "n": 1})
    assert await applied("two", {"name": "b", "n": 2}) == [{"name": "a", "n": 1}, {"name": "b", "n": 2}]
    assert await applied("two") == [{"name": "a", "n": 1}]
    refused = await api.ask(
        "PATCH",
        f"{widgets()}/w",
        a_widget(spec={"parts": [{"name": "a", "n": 5}]}),
        content="application/apply-patch+yaml",
        fieldManager="two",
    )
    assert refused.code == 409
    assert '.spec.parts[name="a"].n' in refused.body["message"]


async def test_a_name_in_use_is_not_accepted_and_the_kind_not_served() -> None:
    api = await defined(names={"shortNames": ["w"]})

    second = await api.post(DEFINITIONS, a_definition(plural="wodgets", kind="Wodget", names={"shortNames": ["w"]}))

    conditions = {each["type"]: (each["status"], each["reason"]) for each in second.body["status"]["conditions"]}
    assert conditions == {"NamesAccepted": ("False", "ShortNamesConflict"), "Established": ("False", "NotAccepted")}
    assert (await api.get(widgets(plural="wodgets"))).code == 404


async def test_a_definition_that_is_deleted_first_refuses_new_objects() -> None:
    api = await defined()
    await api.post(widgets(), a_widget())

    gone = await api.delete(f"{DEFINITIONS}/widgets.example.com")

    assert gone.meta["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    refused = await api.post(widgets(), a_widget("x"))
    assert (refused.code, refused.body["message"]) == (
        405,
        "create not allowed while custom resource definition is terminating",
    )
    await api.delete(f"{widgets()}/w")
    await api.merge(f"{DEFINITIONS}/widgets.example.com", {"metadata": {"finalizers": None}})
    assert (await api.get(widgets())).code == 404


async def test_a_server_over_the_same_store_serves_what_was_defined() -> None:
    store = MemoryStore()
    first = await Api(store).start()
    await first.post(DEFINITIONS, a_definition(a_version(spec=SIZED)))
    await first.post(widgets(), a_widget(spec={"size": 4}))

    second = Api(store)

    assert (await second.get(f"{widgets()}/w")).body["spec"] == {"size": 4}


async def test_a_group_of_the_server_itself_cannot_be_taken() -> None:
    api = await Api().start()
    definition = a_definition(plural="widgets")
    definition["metadata"] = {
        "name": "widgets.apps.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    }
    definition["spec"]["group"] = "scheduling.k8s.io"
    definition["metadata"]["name"] = "widgets.scheduling.k8s.io"

    made = await api.post(DEFINITIONS, definition)

    assert made.code == 201, made.text
    assert (await api.get("/apis/scheduling.k8s.io/v1/widgets")).code == 404
