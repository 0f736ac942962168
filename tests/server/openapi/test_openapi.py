"""OpenAPI v3: what kubectl needs to find in the index and in the documents."""

import json
import re
from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.server.openapi import OpenApi
from muster.server.openapi.texts import MESSAGES
from muster.server.request import Request, Response
from muster.server.served_kinds import build_registry

OPENAPI = OpenApi(build_registry())
VERSIONS = ("v1alpha2", "v1alpha3", "v1beta1")


def get(path: str, query: dict[str, str] | None = None, **headers: str) -> Response:
    arguments = {name: (value,) for name, value in (query or {}).items()}
    answer = OPENAPI.answer(Request("GET", path, arguments, {name.replace("_", "-"): v for name, v in headers.items()}))
    assert answer is not None
    return answer


def index() -> dict[str, str]:
    pages = json.loads(get("/openapi/v3").body)["paths"]
    return {name: page["serverRelativeURL"] for name, page in pages.items()}


def document(name: str) -> dict[str, Any]:
    return json.loads(OPENAPI.document(name))


def test_every_served_group_version_is_in_the_index():
    served = build_registry().groups()

    expected = {f"apis/{group}/{version}" if group else "api/v1" for group in served for version in served[group]}

    assert index().keys() == expected


def test_a_document_is_kept_for_ever_under_the_hash_of_the_index():
    path, _, current = index()["apis/apps/v1"].partition("?hash=")

    answer = get(path, {"hash": current})

    assert answer.status == 200
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["ETag"] == f'"{current}"'


def test_an_outdated_hash_leads_to_the_current_one():
    answer = get("/openapi/v3/apis/apps/v1", {"hash": "OLD"})

    assert answer.status == 301
    assert answer.headers["Location"] == index()["apis/apps/v1"]


def test_a_document_that_the_client_has_is_not_sent_again():
    etag = get("/openapi/v3/api/v1").headers["ETag"]

    assert get("/openapi/v3/api/v1", if_none_match=etag).status == 304


def test_only_json_is_offered():
    with pytest.raises(ApiError) as caught:
        get("/openapi/v3", accept="application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
    assert caught.value.code == 406
    assert get("/openapi/v3", accept="application/json").status == 200


def test_other_paths_are_not_its_business():
    assert OPENAPI.answer(Request("GET", "/openapi/v2")) is None
    assert OPENAPI.answer(Request("GET", "/openapi/v3/apis/nothing/v1")) is None
    assert OPENAPI.answer(Request("POST", "/openapi/v3")) is None


@pytest.mark.parametrize("name", sorted(index()))
def test_every_reference_in_a_document_leads_somewhere(name: str):
    text = OPENAPI.document(name).decode()
    schemas = json.loads(text)["components"]["schemas"]

    assert set(re.findall(r'"#/components/schemas/([^"]+)"', text)) <= schemas.keys()


@pytest.mark.parametrize("name", sorted(index()))
def test_every_patch_tells_its_kind_and_takes_field_validation(name: str):
    patches = [item["patch"] for item in document(name)["paths"].values() if "patch" in item]

    assert patches
    for patch in patches:
        assert patch["x-kubernetes-group-version-kind"]["kind"]
        assert patch["x-kubernetes-action"] == "patch"
        names = {parameter["name"] for parameter in patch["parameters"]}
        assert {"fieldValidation", "fieldManager", "dryRun", "force"} <= names
        assert "application/apply-patch+yaml" in patch["requestBody"]["content"]


@pytest.mark.parametrize("name", sorted(index()))
def test_operation_ids_are_unique_and_paths_declare_their_parameters(name: str):
    seen: set[str] = set()
    for path, item in document(name)["paths"].items():
        declared = {parameter["name"] for parameter in item["parameters"] if parameter["in"] == "path"}
        assert declared == set(re.findall(r"\{(\w+)\}", path))
        for verb, operation in item.items():
            if verb != "parameters":
                assert operation["operationId"] not in seen
                seen.add(operation["operationId"])


def test_lists_tell_how_they_merge():
    container = document("api/v1")["components"]["schemas"]["io.k8s.api.core.v1.Container"]["properties"]

    assert container["ports"]["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert container["ports"]["x-kubernetes-patch-merge-key"] == "containerPort"
    assert container["command"]["x-kubernetes-list-type"] == "atomic"


def test_a_subresource_speaks_of_its_own_kind():
    scale = document("apis/apps/v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]

    assert scale["patch"]["x-kubernetes-group-version-kind"] == {
        "group": "autoscaling",
        "kind": "Scale",
        "version": "v1",
    }


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
def test_every_field_of_the_group_kinds_is_described(version: str):
    schemas = document(f"apis/scheduling.k8s.io/{version}")["components"]["schemas"]
    prefix = f"io.k8s.api.scheduling.{version}."

    bare = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        if name.startswith(prefix) and not name.endswith("List")
        for field, words in schema.get("properties", {}).items()
        if not words.get("description")
    ]

    assert bare == []


def undescribed(name: str, start: str, path: str = "") -> list[str]:
    """The types and fields below a schema that have no words, as `kubectl explain` reaches them."""
    schemas = document(name)["components"]["schemas"]
    found: list[str] = []
    seen: set[str] = set()

    def visit(schema: str, path: str) -> None:
        if schema in seen:
            return
        seen.add(schema)
        if not schemas[schema].get("description"):
            found.append(f"{path} ({schema})")
        for field, words in (schemas[schema].get("properties") or {}).items():
            if not words.get("description"):
                found.append(f"{path}.{field}")
            for reference in re.findall(r"#/components/schemas/([^\"]+)", json.dumps(words)):
                visit(reference, f"{path}.{field}")

    visit(start, path)
    return found


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        *[(f"apis/scheduling.k8s.io/{v}", f"scheduling.{v}.{k}") for v in VERSIONS for k in ("Workload", "PodGroup")],
        ("apis/scheduling.k8s.io/v1alpha3", "scheduling.v1alpha3.CompositePodGroup"),
        ("api/v1", "core.v1.PodSchedulingGroup"),
        ("apis/batch/v1", "batch.v1.JobSchedulingConfiguration"),
    ],
)
def test_everything_that_explain_reaches_from_a_group_has_words(name: str, schema: str):
    assert undescribed(name, f"io.k8s.api.{schema}") == []


@pytest.mark.parametrize(
    ("name", "schema", "field"),
    [
        ("api/v1", "core.v1.PodSpec", "schedulingGroup"),
        ("apis/apps/v1", "core.v1.PodSpec", "schedulingGroup"),
        ("apis/batch/v1", "core.v1.PodSpec", "schedulingGroup"),
        ("apis/batch/v1", "batch.v1.JobSpec", "scheduling"),
    ],
)
def test_the_fields_that_lead_to_a_group_have_words(name: str, schema: str, field: str):
    properties = document(name)["components"]["schemas"][f"io.k8s.api.{schema}"]["properties"]
    assert len(properties[field]["description"]) > 40


def test_words_are_said_of_fields_that_exist():
    known: dict[str, set[str]] = {}
    for name in ("api/v1", "apis/batch/v1", *(f"apis/scheduling.k8s.io/{version}" for version in VERSIONS)):
        for schema, words in document(name)["components"]["schemas"].items():
            known.setdefault(schema, set()).update(words.get("properties") or {})
    assert {name for name in MESSAGES if name not in known} == set()
    assert {f"{n}.{field}" for n, words in MESSAGES.items() for field in words.fields if field not in known[n]} == set()


def test_kinds_are_found_by_group_version_and_kind():
    schemas = document("apis/scheduling.k8s.io/v1alpha3")["components"]["schemas"]

    named = {gvk["kind"] for schema in schemas.values() for gvk in schema.get("x-kubernetes-group-version-kind", [])}

    assert {"PodGroup", "CompositePodGroup", "Workload", "PodGroupList"} <= named


def test_the_hash_changes_with_what_is_served():
    fewer = build_registry()
    fewer.kinds = tuple(kind for kind in fewer.kinds if kind.plural != "daemonsets")

    other = json.loads(OpenApi(fewer).answer(Request("GET", "/openapi/v3")).body)["paths"]  # type: ignore[union-attr]

    assert other["apis/apps/v1"]["serverRelativeURL"] != index()["apis/apps/v1"]
    assert other["apis/batch/v1"]["serverRelativeURL"] == index()["apis/batch/v1"]


def test_schemas_in_definitions_hold_any_value():
    """A client that checks a List of definitions by itself must not take `default: text` for a fault."""
    schemas = document("apis/apiextensions.k8s.io/v1")["components"]["schemas"]
    prefix = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
    properties = schemas[f"{prefix}JSONSchemaProps"]["properties"]
    ref = f"#/components/schemas/{prefix}JSON"
    assert properties["default"]["allOf"] == [{"$ref": ref}]
    assert properties["enum"]["items"] == {"$ref": ref}
    assert properties["additionalProperties"]["allOf"] == [{"$ref": f"{ref}SchemaPropsOrBool"}]
    untyped = {name.removeprefix(prefix) for name in schemas if name.startswith(prefix) and "type" not in schemas[name]}
    alternatives = {f"JSONSchemaPropsOr{each}" for each in ("Array", "Bool", "StringArray")}
    assert untyped == {"JSON", *alternatives}
