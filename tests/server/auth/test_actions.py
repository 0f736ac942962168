"""From a request to the action that needs permission."""

import pytest

from muster.server.auth.actions import action_of
from muster.server.auth.rules import Action
from muster.server.request import Request

PODS = "/api/v1/namespaces/n/pods"


@pytest.mark.parametrize(
    ("method", "path", "query", "action"),
    [
        ("GET", f"{PODS}/p", {}, Action("get", "", "pods", "", "n", "p", "", "v1")),
        ("HEAD", f"{PODS}/p", {}, Action("get", "", "pods", "", "n", "p", "", "v1")),
        ("GET", PODS, {}, Action("list", "", "pods", "", "n", "", "", "v1")),
        ("GET", "/api/v1/pods", {"watch": ("1",)}, Action("watch", "", "pods", "", "", "", "", "v1")),
        (
            "GET",
            PODS,
            {"fieldSelector": ("metadata.name=p",)},
            Action("list", "", "pods", "", "n", "p", "", "v1", "metadata.name=p"),
        ),
        (
            "GET",
            PODS,
            {"fieldSelector": ("metadata.name==p",)},
            Action("list", "", "pods", "", "n", "p", "", "v1", "metadata.name==p"),
        ),
        (
            "GET",
            PODS,
            {"fieldSelector": ("status.phase=p",)},
            Action("list", "", "pods", "", "n", "", "", "v1", "status.phase=p"),
        ),
        ("GET", "/api/v1/watch/pods", {}, Action("watch", "", "pods", "", "", "", "", "v1")),
        ("POST", PODS, {}, Action("create", "", "pods", "", "n", "", "", "v1")),
        ("POST", f"{PODS}/p/binding", {}, Action("create", "", "pods", "binding", "n", "p", "", "v1")),
        ("PUT", f"{PODS}/p/status", {}, Action("update", "", "pods", "status", "n", "p", "", "v1")),
        ("PATCH", f"{PODS}/p", {}, Action("patch", "", "pods", "", "n", "p", "", "v1")),
        ("DELETE", f"{PODS}/p", {}, Action("delete", "", "pods", "", "n", "p", "", "v1")),
        ("DELETE", PODS, {}, Action("deletecollection", "", "pods", "", "n", "", "", "v1")),
        ("GET", "/api/v1/namespaces", {}, Action("list", "", "namespaces", "", "", "", "", "v1")),
        ("GET", "/api/v1/namespaces/n", {}, Action("get", "", "namespaces", "", "n", "n", "", "v1")),
        (
            "PUT",
            "/api/v1/namespaces/n/finalize",
            {},
            Action("update", "", "namespaces", "finalize", "n", "n", "", "v1"),
        ),
        (
            "GET",
            "/apis/scheduling.k8s.io/v1alpha3/namespaces/n/podgroups/g",
            {},
            Action("get", "scheduling.k8s.io", "podgroups", "", "n", "g", "", "v1alpha3"),
        ),
        ("GET", "/apis/apps/v1", {}, Action("get", path="/apis/apps/v1")),
        ("GET", "/version", {}, Action("get", path="/version")),
        ("POST", "/", {}, Action("post", path="/")),
    ],
)
def test_a_request_asks_for_one_action(
    method: str, path: str, query: dict[str, tuple[str, ...]], action: Action
) -> None:
    assert action_of(Request(method, path, query)) == action
