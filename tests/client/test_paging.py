"""Paged lists."""

from __future__ import annotations

import pytest

from muster.api.errors import ApiError, gone
from muster.api.resources import PODS
from muster.client.paging import list_all, pages
from muster.client.protocol import Page
from tests.client.scripts import Script, obj


async def test_pages_come_one_by_one():
    script = Script([Page([obj("a", 1)], "5", "more"), Page([obj("b", 2)], "5")])

    assert [len(page.items) async for page in pages(script, PODS, size=1)] == [1, 1]  # type: ignore[arg-type]
    assert [(query["limit"], query["continue_token"]) for query in script.asked] == [(1, ""), (1, "more")]


async def test_a_whole_collection_is_one_page_with_the_lists_version():
    script = Script([Page([obj("a", 1)], "5", "more"), Page([obj("b", 2)], "5")])

    found = await list_all(script, PODS)  # type: ignore[arg-type]

    assert [item["metadata"]["name"] for item in found.items] == ["a", "b"]
    assert (found.resource_version, found.continue_token) == ("5", "")


async def test_an_empty_collection_has_a_version():
    assert await list_all(Script([Page([], "9")]), PODS) == Page([], "9")  # type: ignore[arg-type]


async def test_a_list_that_expires_on_the_way_starts_over_in_one_piece():
    script = Script([Page([obj("a", 1)], "5", "more"), gone("expired"), Page([obj("b", 2)], "6")])

    found = await list_all(script, PODS, label_selector="app=x")  # type: ignore[arg-type]

    assert [item["metadata"]["name"] for item in found.items] == ["b"], "nothing of the first try is left"
    assert script.asked[2]["limit"] == 0
    assert script.asked[2]["label_selector"] == "app=x"


@pytest.mark.parametrize("code", [410, 403])
async def test_a_list_that_is_refused_at_once_is_refused(code: int):
    with pytest.raises(ApiError):
        await list_all(Script([ApiError(code, "R", "no")]), PODS)  # type: ignore[arg-type]
