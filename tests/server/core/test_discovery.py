"""What is served, as clients find out; and the pages about the server itself."""

from __future__ import annotations

import pytest
from core_api import Api

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (f"{V2},{V2BETA1},application/json", V2),
        (f"{V2BETA1},application/json", V2BETA1),
        (f"{V2},application/json", V2),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("", "application/json"),
    ],
)
async def test_discovery_answers_in_exactly_a_version_that_was_asked(api: Api, accept: str, content_type: str) -> None:
    for path in ("/api", "/apis"):
        page = await api.ask("GET", path, accept=accept)
        assert page.code == 200
        assert page.response.content_type == content_type
        if content_type != "application/json":
            version = "v2beta1" if "v2beta1" in content_type else "v2"
            assert page.body["apiVersion"] == f"apidiscovery.k8s.io/{version}"


async def test_aggregated_discovery_has_everything_a_client_needs(api: Api) -> None:
    page = await api.ask("GET", "/apis", accept=V2)
    groups = {item["metadata"]["name"]: item for item in page.body["items"]}
    scheduling = groups["scheduling.k8s.io"]
    versions = {entry["version"]: entry["resources"] for entry in scheduling["versions"]}

    assert list(versions) == ["v1", "v1beta1", "v1alpha3", "v1alpha2"]
    (group,) = [entry for entry in versions["v1beta1"] if entry["resource"] == "podgroups"]
    assert group["responseKind"] == {"group": "scheduling.k8s.io", "version": "v1beta1", "kind": "PodGroup"}
    assert (group["scope"], group["singularResource"], group["shortNames"]) == ("Namespaced", "podgroup", ["pg"])
    assert group["subresources"][0]["verbs"] == ["get", "patch", "update"]
    assert [entry["resource"] for entry in versions["v1alpha3"]] == ["workloads", "podgroups", "compositepodgroups"]
    deployments = groups["apps"]["versions"][0]["resources"][0]
    scale = [entry for entry in deployments["subresources"] if entry["subresource"] == "scale"]
    assert scale[0]["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert deployments["categories"] == ["all"]


async def test_a_client_that_has_the_page_is_told_so(api: Api) -> None:
    page = await api.ask("GET", "/apis", accept=V2)
    etag = page.response.headers["ETag"]
    again = await api.raw("GET", "/apis", accept=V2, headers={"if-none-match": etag})
    assert again.status == 304  # type: ignore[union-attr]


async def test_the_older_pages(api: Api) -> None:
    core = await api.get("/api")
    groups = await api.get("/apis")
    group = await api.get("/apis/scheduling.k8s.io")
    resources = await api.get("/apis/scheduling.k8s.io/v1alpha3")

    assert core.body["versions"] == ["v1"]
    assert "apps" in [entry["name"] for entry in groups.body["groups"]]
    assert group.body["preferredVersion"]["version"] == "v1"
    by_name = {entry["name"]: entry for entry in resources.body["resources"]}
    assert list(by_name) == [
        "compositepodgroups",
        "compositepodgroups/status",
        "podgroups",
        "podgroups/status",
        "workloads",
    ]
    assert by_name["podgroups"]["storageVersionHash"] == "QjOl2H5qPs0="
    assert by_name["workloads"]["storageVersionHash"] == "Fgcxusx6IUo="
    assert by_name["compositepodgroups"]["storageVersionHash"] == "L+dT284DGFE="
    assert by_name["podgroups"]["verbs"] == [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ]


async def test_pods_list_their_subresources(api: Api) -> None:
    page = await api.get("/api/v1")
    names = [entry["name"] for entry in page.body["resources"]]
    for name in ("pods/status", "pods/binding", "pods/eviction", "pods/log", "serviceaccounts/token", "nodes/status"):
        assert name in names
    (eviction,) = [entry for entry in page.body["resources"] if entry["name"] == "pods/eviction"]
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")


async def test_unknown_groups_and_versions_are_not_found(api: Api) -> None:
    for path in ("/apis/nope", "/apis/apps/v9", "/api/v2", "/nonsense", "/apis/apps/v1/deployments/x/y/z"):
        missing = await api.get(path)
        assert (missing.code, missing.body["kind"]) == (404, "Status")
        assert missing.body["details"] == {}


async def test_the_root_lists_paths(api: Api) -> None:
    paths = (await api.get("/")).body["paths"]
    assert {"/api", "/apis/apps/v1", "/readyz", "/openapi/v3"} <= set(paths)


async def test_the_version(api: Api) -> None:
    version = await api.get("/version")
    slashed = await api.get("/version/")
    assert (version.body["major"], version.body["minor"]) == ("1", "37")
    assert version.body["gitVersion"] == "v1.37.0+muster"
    assert slashed.body == version.body


async def test_health_checks_say_what_is_wrong(api: Api) -> None:
    fine = await api.get("/readyz")
    verbose = await api.get("/readyz", verbose="")
    api.server.hooks.health["scheduler"] = lambda: "not synced"
    failed = await api.get("/readyz")
    excluded = await api.get("/readyz", exclude="scheduler")
    single = await api.get("/livez/ping")

    assert (fine.code, fine.text) == (200, "ok")
    assert "[+]ping ok\n" in verbose.text
    assert verbose.text.endswith("readyz check passed\n")
    assert failed.code == 500
    assert "[-]scheduler failed: reason withheld" in failed.text
    assert (excluded.code, excluded.text) == (200, "ok")
    assert single.text == "ok"
    assert (await api.get("/livez/unknown")).code == 404
