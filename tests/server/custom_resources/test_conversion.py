"""Versions that a webhook converts: what is stored, what is shown, and what a webhook may not do."""

from __future__ import annotations

import asyncio
from typing import Any

from muster.api.errors import internal
from muster.server.request import WatchStream
from tests.server.core.core_api import Api
from tests.server.custom_resources.custom_api import DEFINITIONS, a_definition, a_version, a_widget, widgets

OLD, NEW = {"size": {"type": "string"}}, {"width": {"type": "integer"}}


class Webhook:
    """Sizes are texts in v1beta1 and widths are numbers in v1."""

    def __init__(self) -> None:
        self.calls = 0
        self.failure = ""
        self.renames = False

    async def __call__(self, client_config: Any, body: Any, seconds: float, reader: Any) -> Any:
        self.calls += 1
        if self.failure:
            raise internal(self.failure)
        request = body["request"]
        objects = [self._converted(each, request["desiredAPIVersion"]) for each in request["objects"]]
        return {"response": {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}}

    def _converted(self, obj: Any, wanted: str) -> Any:
        spec = obj.get("spec") or {}
        if wanted.endswith("/v1"):
            made = {"width": int(spec["size"])} if "size" in spec else {}
        else:
            made = {"size": str(spec["width"])} if "width" in spec else {}
        metadata = {**obj["metadata"], "labels": {"converted": "yes"}}
        if self.renames:
            metadata["name"] = "other"
        return {"kind": obj["kind"], "apiVersion": wanted, "metadata": metadata, "spec": made}


async def converting() -> tuple[Api, Webhook]:
    api, webhook = await Api().start(), Webhook()
    api.server.hooks.ask_webhook = webhook
    config = {"url": "https://127.0.0.1:1/convert"}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}
    versions = (a_version("v1", NEW), a_version("v1beta1", OLD, storage=False))
    made = await api.post(DEFINITIONS, a_definition(*versions, conversion=conversion))
    assert made.code == 201, made.text
    return api, webhook


async def test_an_object_is_shown_in_the_version_that_is_asked_for() -> None:
    api, _ = await converting()

    made = await api.post(widgets("v1beta1"), a_widget("w", "v1beta1", spec={"size": "5"}))

    assert (made.code, made.body["spec"]) == (201, {"size": "5"})
    assert (await api.get(f"{widgets()}/w")).body["spec"] == {"width": 5}
    assert (await api.get(widgets("v1beta1"))).body["items"][0]["spec"] == {"size": "5"}


async def test_a_patch_in_one_version_changes_the_object_in_all() -> None:
    api, _ = await converting()
    await api.post(widgets(), a_widget(spec={"width": 1}))

    patched = await api.merge(f"{widgets('v1beta1')}/w", {"spec": {"size": "7"}})

    assert patched.body["spec"] == {"size": "7"}
    assert (await api.get(f"{widgets()}/w")).body["spec"] == {"width": 7}
    assert (await api.delete(f"{widgets('v1beta1')}/w")).code == 200


async def test_a_list_is_one_call_and_reading_again_is_none() -> None:
    api, webhook = await converting()
    for name in ("a", "b", "c"):
        await api.post(widgets(), a_widget(name, spec={"width": 1}))
    assert webhook.calls == 0

    await api.get(widgets("v1beta1"))
    await api.get(widgets("v1beta1"))

    assert webhook.calls == 1


async def test_a_watch_shows_converted_objects() -> None:
    api, _ = await converting()
    stream = await api.raw("GET", widgets("v1beta1"), watch="true", timeoutSeconds="5")
    assert isinstance(stream, WatchStream)
    first = asyncio.create_task(anext(aiter(stream.frames)))

    await api.post(widgets(), a_widget(spec={"width": 3}))

    assert b'"spec":{"size":"3"}' in await asyncio.wait_for(first, 5)


async def test_a_webhook_that_fails_is_named() -> None:
    api, webhook = await converting()
    await api.post(widgets(), a_widget(spec={"width": 1}))
    webhook.failure = 'Post "https://127.0.0.1:1/convert": connection refused'

    answer = await api.get(f"{widgets('v1beta1')}/w")

    assert answer.code == 500
    assert answer.body["message"].startswith("conversion webhook for example.com/v1, Kind=Widget failed: Post")
    assert (await api.get(f"{widgets()}/w")).code == 200


async def test_a_webhook_may_not_rename() -> None:
    api, webhook = await converting()
    await api.post(widgets(), a_widget(spec={"width": 1}))
    webhook.renames = True

    answer = await api.get(f"{widgets('v1beta1')}/w")

    assert (answer.code, "metadata.name must not change" in answer.text) == (500, True)
