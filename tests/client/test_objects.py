"""Parts of objects in JSON form."""

from __future__ import annotations

import pytest

from muster.client.objects import conditions, metadata, part


@pytest.mark.parametrize(
    "obj", [{}, {"metadata": None, "spec": None, "status": None}, {"status": {"conditions": None}}]
)
def test_what_is_absent_or_null_is_empty(obj):
    assert metadata(obj) == {}
    assert part(obj, "spec") == {}
    assert conditions(obj) == []


def test_what_is_there_is_given():
    obj = {"metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"conditions": [{"type": "Ready"}]}}

    assert (metadata(obj), part(obj, "spec"), conditions(obj)) == ({"name": "a"}, {"x": 1}, [{"type": "Ready"}])
