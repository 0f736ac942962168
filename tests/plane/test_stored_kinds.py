"""Data directories: older ones open unchanged, and objects whose kind is not served are kept."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import pytest
from tests.server.custom_resources.custom_api import a_definition, a_widget

from muster.api.errors import ApiError
from muster.api.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, POD_GROUPS, PODS, Resource
from muster.plane.api import Api
from muster.server.store.sqlite import SqliteStore

RECORDED = Path(__file__).parents[1] / "server/store/recorded/before_custom_resources.db.gz"
WIDGETS = Resource("example.com", "v1", "widgets", "Widget", True)


async def test_a_directory_from_before_custom_resources_opens_unchanged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "muster.db").write_bytes(gzip.decompress(RECORDED.read_bytes()))

    api = await Api.open(data)
    try:
        kept = await api.client.get(CONFIG_MAPS, "kept", "default")
        assert (kept["data"], kept["metadata"]["name"]) == ({"a": "c"}, "kept")
        gang = await api.client.get(POD_GROUPS, "gang", "default")
        assert gang["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
        assert (await api.client.get(PODS, "p", "default"))["spec"]["containers"][0]["image"] == "i"
        await api.client.create(CUSTOM_RESOURCE_DEFINITIONS, a_definition())
        await api.client.create(WIDGETS, a_widget(), "default")
    finally:
        await api.close()

    again = await Api.open(data)
    try:
        assert (await again.client.get(WIDGETS, "w", "default"))["kind"] == "Widget"
    finally:
        await again.close()


async def test_objects_without_their_definition_are_kept_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = await Api.open(tmp_path / "data")
    await api.client.create(CUSTOM_RESOURCE_DEFINITIONS, a_definition())
    for name in ("a", "b"):
        await api.client.create(WIDGETS, a_widget(name), "default")
    await api.close()
    store = SqliteStore.open(tmp_path / "data")
    table = "customresourcedefinitions.apiextensions.k8s.io"
    record = store.get(table, ("", "widgets.example.com"))
    assert record is not None
    await store.delete(table, record.key, record.revision, lambda revision: record.body)
    await store.close()

    with caplog.at_level(logging.WARNING):
        again = await Api.open(tmp_path / "data")
    try:
        lines = [each for each in caplog.records if "kept and not served" in each.getMessage()]
        assert [each.keys for each in lines] == [{"resource": "widgets.example.com", "count": 2}]
        with pytest.raises(ApiError):
            await again.client.list(WIDGETS)
        await again.client.create(CUSTOM_RESOURCE_DEFINITIONS, a_definition())
        assert len((await again.client.list(WIDGETS)).items) == 2
    finally:
        await again.close()
