"""Definitions to try things on, and a server that has them."""

from __future__ import annotations

from typing import Any

from tests.server.core.core_api import Answer, Api

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "example.com"

Obj = dict[str, Any]


def a_version(name: str = "v1", spec: Obj | None = None, *, storage: bool = True, **more: Any) -> Obj:
    """One version whose objects have a spec of these properties."""
    properties = {"spec": {"type": "object", "properties": spec or {}}}
    if "status" in (more.get("subresources") or {}):
        properties["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": name, "served": True, "storage": storage, "schema": schema, **more}


def a_definition(*versions: Obj, plural: str = "widgets", kind: str = "Widget", **more: Any) -> Obj:
    """A definition of namespaced widgets."""
    names = {"plural": plural, "kind": kind, **more.pop("names", {})}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": list(versions) or [a_version()], **more}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": spec,
    }


def a_widget(name: str = "w", version: str = "v1", kind: str = "Widget", **fields: Any) -> Obj:
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name}, **fields}


def widgets(version: str = "v1", plural: str = "widgets", namespace: str = "default") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/{namespace}/{plural}"


async def defined(*versions: Obj, **more: Any) -> Api:
    """A server with one definition."""
    api = await Api().start()
    answer = await api.post(DEFINITIONS, a_definition(*versions, **more))
    assert answer.code == 201, answer.text
    return api


def errors(answer: Answer) -> dict[str, str]:
    """What a 422 says of each field."""
    assert answer.code == 422, answer.text
    return {cause["field"]: cause["message"] for cause in answer.body["details"]["causes"]}
