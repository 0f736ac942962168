"""Creating, changing and deleting: what the server fills in, what it refuses, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from core_api import CONFIG_MAPS, GROUPS, NODES, PODS, Answer, Api, a_config_map

from muster.server import metadata
from muster.server.core import ApiServer
from muster.server.request import ADMIN, Request, Response, User
from muster.server.resources.kind import Write
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore
from muster.testing import a_pod, a_pod_group

# Create


async def test_a_create_gives_uid_timestamp_namespace_and_resource_version(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, a_config_map("a", k="v"))

    assert made.code == 201
    assert made.body["kind"] == "ConfigMap"
    assert made.meta["namespace"] == "default"
    assert made.meta["creationTimestamp"] == metadata.timestamp(api.clock.now)
    assert len(made.meta["uid"]) == 36
    assert made.rv == str(api.store.revision)


async def test_a_second_create_of_the_same_name_is_a_conflict(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    again = await api.post(CONFIG_MAPS, a_config_map("a"))

    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
    assert again.body["message"] == 'configmaps "a" already exists'
    assert again.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_generate_name_appends_five_letters(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, {"metadata": {"generateName": "job-"}})

    assert made.meta["name"].startswith("job-")
    assert len(made.meta["name"]) == len("job-") + 5
    assert made.meta["generateName"] == "job-"


async def test_generate_name_tries_again_when_the_name_is_taken(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["x-taken", "x-taken", "x-free"])
    monkeypatch.setattr(api.server.backend.identifiers, "name", lambda *_: next(names))
    await api.post(CONFIG_MAPS, a_config_map("x-taken"))

    assert (await api.post(CONFIG_MAPS, {"metadata": {"generateName": "x-"}})).meta["name"] == "x-free"


async def test_generate_name_gives_up_after_eight_tries(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []
    monkeypatch.setattr(api.server.backend.identifiers, "name", lambda *_: tries.append("x-") or "x-taken")
    await api.post(CONFIG_MAPS, a_config_map("x-taken"))
    refused = await api.post(CONFIG_MAPS, {"metadata": {"generateName": "x-"}})

    assert (refused.code, refused.body["reason"], len(tries)) == (409, "AlreadyExists", 8)
    assert "not able to generate a unique name" in refused.body["message"]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"metadata": {}}, 422, "name or generateName is required"),
        ({"metadata": {"name": "Upper"}}, 422, "metadata.name: Invalid value"),
        ({"metadata": {"name": "a", "namespace": "other"}}, 400, "does not match the namespace"),
        ({"metadata": {"name": "a", "resourceVersion": "7"}}, 400, "resourceVersion should not be set"),
        ({"metadata": {"name": "a", "labels": {"bad key": "x"}}}, 422, "metadata.labels"),
        ({"kind": "Pod", "metadata": {"name": "a"}}, 400, "must be of type ConfigMap"),
        ({"apiVersion": "v2", "metadata": {"name": "a"}}, 400, "does not match the expected API version (v1)"),
        ({"metadata": "a"}, 400, ""),
        ([], 400, ""),
        ("text", 400, ""),
    ],
)
async def test_a_malformed_create_is_refused(api: Api, body: object, code: int, words: str) -> None:
    refused = await api.post(CONFIG_MAPS, body)

    assert refused.code == code
    assert refused.body["kind"] == "Status"
    assert words in refused.body["message"]


async def test_bytes_that_are_not_json_are_a_bad_request(api: Api) -> None:
    for body in (b"{", b"\xff\xfe", b"[" * 100_000, b'{"metadata":{"name":"a"}} trailing'):
        assert (await api.post(CONFIG_MAPS, body)).code == 400


async def test_an_unknown_content_type_is_415_and_an_unknown_accept_is_406(api: Api) -> None:
    sent = await api.post(CONFIG_MAPS, b"<a/>", content="text/xml")
    asked = await api.ask("GET", CONFIG_MAPS, accept="text/html")
    patched = await api.ask("PATCH", f"{CONFIG_MAPS}/a", {}, content="application/json")

    assert (sent.code, sent.body["reason"]) == (415, "UnsupportedMediaType")
    assert (asked.code, asked.body["reason"]) == (406, "NotAcceptable")
    assert patched.code == 415


async def test_a_yaml_body_and_a_yaml_answer(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, b"metadata: {name: y}\ndata: {a: b}\n", content="application/yaml")
    shown = await api.raw("GET", f"{CONFIG_MAPS}/y", accept="application/yaml")

    assert made.body["data"] == {"a": "b"}
    assert b"  a: b" in shown.body  # type: ignore[union-attr]
    assert shown.content_type == "application/yaml"


async def test_yaml_aliases_are_refused(api: Api) -> None:
    body = b"metadata: {name: y}\ndata: &d {a: b}\nbinaryData: *d\n"
    assert (await api.post(CONFIG_MAPS, body, content="application/yaml")).code == 400


async def test_strict_validation_refuses_an_unknown_field_and_warn_warns(api: Api) -> None:
    body = {**a_config_map("a"), "dta": {}}
    strict = await api.post(CONFIG_MAPS, body, fieldValidation="Strict")
    warned = await api.post(CONFIG_MAPS, body)
    quiet = await api.post(CONFIG_MAPS, {**body, "metadata": {"name": "b"}}, fieldValidation="Ignore")

    assert strict.code == 400
    assert 'strict decoding error: unknown field "dta"' in strict.body["message"]
    assert (warned.code, warned.warnings) == (201, ['unknown field "dta"'])
    assert (quiet.code, quiet.warnings) == (201, [])


async def test_objects_cannot_be_created_in_a_namespace_that_does_not_exist(api: Api) -> None:
    refused = await api.post("/api/v1/namespaces/nowhere/configmaps", a_config_map())
    assert (refused.code, refused.body["message"]) == (404, 'namespaces "nowhere" not found')


async def test_every_verb_has_its_place(api: Api) -> None:
    assert (await api.post(f"{CONFIG_MAPS}/a", a_config_map("a"))).code == 405
    assert (await api.put(CONFIG_MAPS, a_config_map("a"))).code == 405
    assert (await api.post("/api/v1/configmaps", a_config_map("a"))).code == 405
    assert (await api.get("/api/v1/namespaces/default/nodes")).code == 404
    assert (await api.get("/api/v1/unknowns")).code == 404
    assert (await api.get("/apis/no.such.group/v1/things")).code == 404
    assert (await api.ask("TRACE", CONFIG_MAPS)).code == 405


# Update


async def test_an_update_with_a_stale_resource_version_is_a_conflict(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, a_config_map("a"))
    await api.put(f"{CONFIG_MAPS}/a", {**made.body, "data": {"k": "1"}})
    stale = await api.put(f"{CONFIG_MAPS}/a", {**made.body, "data": {"k": "2"}})

    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    assert stale.body["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_an_update_without_a_resource_version_is_unconditional(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    updated = await api.put(f"{CONFIG_MAPS}/a", a_config_map("a", k="1"))
    assert (updated.code, updated.body["data"]) == (200, {"k": "1"})


async def test_groups_refuse_an_unconditional_update(api: Api) -> None:
    await api.post(GROUPS, a_pod_group("g", min_count=2))
    refused = await api.put(f"{GROUPS}/g", a_pod_group("g", min_count=3))
    assert refused.code == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in refused.body["message"]


async def test_an_update_keeps_what_belongs_to_the_server(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, a_config_map("a"))
    changed = {**made.body, "data": {"k": "1"}}
    changed["metadata"] = {**made.meta, "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9, "selfLink": "x"}
    api.clock.now += 100
    updated = await api.put(f"{CONFIG_MAPS}/a", changed)

    assert updated.meta["creationTimestamp"] == made.meta["creationTimestamp"]
    assert updated.meta["uid"] == made.meta["uid"]
    assert "generation" not in updated.meta
    assert "selfLink" not in updated.meta


async def test_an_update_with_another_uid_is_a_conflict(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    wrong = {"metadata": {"name": "a", "uid": "someone-else"}}
    assert (await api.put(f"{CONFIG_MAPS}/a", wrong)).code == 409


async def test_an_update_that_changes_nothing_keeps_the_revision(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, a_config_map("a", k="1"))
    before = api.store.revision
    same = await api.put(f"{CONFIG_MAPS}/a", made.body)
    patched = await api.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "1"}})

    assert same.rv == patched.rv == made.rv
    assert api.store.revision == before


async def test_an_update_of_the_wrong_name_or_of_nothing(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    wrong = await api.put(f"{CONFIG_MAPS}/a", a_config_map("b"))
    missing = await api.put(f"{CONFIG_MAPS}/z", a_config_map("z"))

    assert wrong.body["message"] == "the name of the object (b) does not match the name on the URL (a)"
    assert (missing.code, missing.body["details"]) == (404, {"name": "z", "kind": "configmaps"})


async def test_generation_counts_changes_of_the_spec_only(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = await api.post(path, {"metadata": {"name": "d"}, "spec": spec})
    labelled = await api.merge(f"{path}/d", {"metadata": {"labels": {"x": "y"}}})
    scaled = await api.merge(f"{path}/d", {"spec": {"replicas": 3}})
    status = await api.merge(f"{path}/d/status", {"status": {"replicas": 3}})

    assert [answer.meta["generation"] for answer in (made, labelled, scaled, status)] == [1, 1, 2, 2]


async def test_status_and_spec_are_written_apart(api: Api) -> None:
    await api.post(GROUPS, {**a_pod_group("g", min_count=2), "status": {"conditions": []}})
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    spec = {"schedulingPolicy": {"gang": {"minCount": 9}}}
    status = await api.merge(f"{GROUPS}/g/status", {"spec": spec, "status": {"conditions": [condition]}})
    main = await api.merge(f"{GROUPS}/g", {"spec": spec, "status": {"conditions": []}})

    assert status.body["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2
    assert main.body["spec"]["schedulingPolicy"]["gang"]["minCount"] == 9
    assert main.body["status"]["conditions"] == [condition]


# Dry run


async def test_a_dry_run_stores_nothing(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a", k="1"))
    before = api.store.revision

    made = await api.post(CONFIG_MAPS, a_config_map("b"), dryRun="All")
    changed = await api.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "2"}}, dryRun="All")
    deleted = await api.delete(f"{CONFIG_MAPS}/a", dryRun="All")
    by_body = await api.delete(f"{CONFIG_MAPS}/a", {"dryRun": ["All"]})
    taken = await api.post(CONFIG_MAPS, a_config_map("a"), dryRun="All")

    assert (made.code, changed.body["data"], deleted.code, by_body.code) == (201, {"k": "2"}, 200, 200)
    assert "resourceVersion" not in made.meta
    assert taken.code == 409
    assert api.store.revision == before


async def test_dry_run_knows_one_value(api: Api) -> None:
    assert (await api.post(CONFIG_MAPS, a_config_map("b"), dryRun="Some")).code == 422


# Patch


async def test_the_three_patches_and_apply(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a", one="1", two="2"))
    path = f"{CONFIG_MAPS}/a"
    merged = await api.merge(path, {"data": {"one": None, "three": "3"}})
    operations = [{"op": "add", "path": "/data/four", "value": "4"}]
    jsoned = await api.ask("PATCH", path, operations, content="application/json-patch+json")
    strategic = await api.ask(
        "PATCH", path, {"data": {"$patch": "replace", "only": "x"}}, content="application/strategic-merge-patch+json"
    )
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"mine": "y"}}
    applied = await api.ask("PATCH", path, config, content="application/apply-patch+yaml", fieldManager="me")

    assert merged.body["data"] == {"two": "2", "three": "3"}
    assert jsoned.body["data"] == {"two": "2", "three": "3", "four": "4"}
    assert strategic.body["data"] == {"only": "x"}
    assert applied.body["data"] == {"only": "x", "mine": "y"}
    assert "me" in [entry["manager"] for entry in applied.meta["managedFields"]]


async def test_apply_creates_what_is_missing(api: Api) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": {"a": "b"}}
    path = f"{CONFIG_MAPS}/new"
    first = await api.ask("PATCH", path, config, content="application/apply-patch+yaml", fieldManager="me")
    again = await api.ask("PATCH", path, config, content="application/apply-patch+yaml", fieldManager="me")

    assert (first.code, again.code) == (201, 200)
    assert first.rv == again.rv


async def test_apply_without_a_manager_is_refused(api: Api) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
    refused = await api.ask("PATCH", f"{CONFIG_MAPS}/new", config, content="application/apply-patch+yaml")
    assert refused.code == 422
    assert "fieldManager: Required value" in refused.body["message"]


async def test_a_patch_that_names_a_stale_resource_version_is_a_conflict(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    stale = await api.merge(f"{CONFIG_MAPS}/a", {"metadata": {"resourceVersion": "1"}, "data": {"k": "1"}})
    assert stale.code == 409


async def test_a_patch_cannot_rename_or_change_the_kind(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    assert (await api.merge(f"{CONFIG_MAPS}/a", {"metadata": {"name": "b"}})).code == 400
    assert (await api.merge(f"{CONFIG_MAPS}/a", {"kind": "Secret"})).code == 400


async def test_writes_by_others_track_their_fields(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, a_config_map("a", k="1"), headers={"user-agent": "kubectl/v1.37"})
    changed = await api.merge(f"{CONFIG_MAPS}/a", {"data": {"j": "2"}}, fieldManager="robot")

    assert [entry["manager"] for entry in made.meta["managedFields"]] == ["kubectl"]
    owners = {entry["manager"]: entry["fieldsV1"] for entry in changed.meta["managedFields"]}
    assert owners["robot"] == {"f:data": {"f:j": {}}}


# Versions


async def test_a_group_written_in_one_version_reads_in_the_others(api: Api) -> None:
    base = "/apis/scheduling.k8s.io/{}/namespaces/default/podgroups"
    old = {
        "metadata": {"name": "g"},
        "spec": {
            "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "disruptionMode": "PodGroup",
        },
    }
    made = await api.post(base.format("v1alpha2"), old)
    beta = await api.get(base.format("v1beta1") + "/g")
    listed = await api.get(base.format("v1alpha2"))

    assert made.code == 201
    assert made.body["spec"]["disruptionMode"] == "PodGroup"
    assert beta.body["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert beta.body["spec"]["workloadRef"] == {"workloadName": "w", "templateName": "t"}
    assert beta.body["spec"]["disruptionMode"] == {"all": {}}
    assert listed.body["items"][0]["spec"]["podGroupTemplateRef"]["workload"]["workloadName"] == "w"


async def test_nodes_register_with_their_status(api: Api) -> None:
    made = await api.post(NODES, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})
    assert made.body["status"]["allocatable"] == {"cpu": "4"}


async def test_a_pod_is_stored_as_kubernetes_would(api: Api) -> None:
    made = await api.post(PODS, a_pod("p"))
    assert made.body["status"]["phase"] == "Pending"
    assert made.body["spec"]["schedulerName"] == "default-scheduler"
    assert made.body["spec"]["priority"] == 0


async def test_some_kinds_are_created_by_an_update(api: Api) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    made = await api.put(f"{leases}/l", lease)
    again = await api.put(f"{leases}/l", lease)

    assert (made.code, again.code) == (201, 422)
    assert (await api.put(f"{leases}/l", {**made.body, "spec": {"holderIdentity": "you"}})).code == 200


_TWICE = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: x\n  b: y\n  a: z\n"
_WORDS = 'line 8: key "a" already set in map'


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("POST", CONFIG_MAPS, "application/yaml"),
        ("PATCH", f"{CONFIG_MAPS}/c", "application/apply-patch+yaml"),
    ],
)
async def test_a_key_that_yaml_repeats_is_refused_or_warned_of(api: Api, method: str, path: str, content: str) -> None:
    async def asked(mode: str) -> Answer:
        more = {"fieldManager": "m"} if method == "PATCH" else {}
        return await api.ask(method, path, _TWICE, content=content, dryRun="All", fieldValidation=mode, **more)

    strict, warned, ignored = await asked("Strict"), await asked("Warn"), await asked("Ignore")
    assert (strict.code, _WORDS in strict.body["message"]) == (400, True)
    assert (warned.code, [_WORDS in each for each in warned.warnings]) == (201, [True])
    assert (ignored.code, ignored.warnings) == (201, [])


async def test_reviews_have_no_table() -> None:
    async def answer(write: Write, obj: dict[str, Any]) -> dict[str, Any]:
        return obj

    server = ApiServer(MemoryStore(), build_registry(answers={"selfsubjectreviews": answer}))
    headers = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    refused = await server.handle(Request("POST", path, {}, headers, b"{}", ADMIN))
    assert isinstance(refused, Response)
    assert refused.status == 406


async def test_reviews_are_answered_and_not_stored() -> None:
    async def answer(write: Write, review: dict[str, Any]) -> dict[str, Any]:
        return {**review, "status": {"userInfo": {"username": write.user.name}}}

    server = ApiServer(MemoryStore(), build_registry(answers={"selfsubjectreviews": answer}))
    before = server.store.revision
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"content-type": "application/json"}
    asked = await server.handle(Request("POST", path, {}, headers, b"{}", User("jane")))
    listed = await server.handle(Request("GET", path))

    assert asked.status == 201  # type: ignore[union-attr]
    assert b'"username":"jane"' in asked.body  # type: ignore[union-attr]
    assert listed.status == 405  # type: ignore[union-attr]
    assert server.store.revision == before


async def test_an_error_nobody_foresaw_is_a_500_without_details(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret insides")

    monkeypatch.setattr(api.store, "get", broken)
    answer = await api.get(f"{PODS}/p")

    assert (answer.code, answer.body["reason"]) == (500, "InternalError")
    assert "secret" not in answer.text
    assert "secret insides" in caplog.text
