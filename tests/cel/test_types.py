"""Names and sizes of declared types."""

from __future__ import annotations

import pytest

from muster.cel import INT, ListOf, MapOf, Text
from muster.cel.types import escaped


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("replicas", "replicas"),
        ("namespace", "__namespace__"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("a b", ""),
        ("1a", ""),
        ("ü", ""),
    ],
)
def test_properties_have_the_names_that_kubernetes_gives_them(name: str, written: str) -> None:
    assert escaped(name) == written


def test_without_a_limit_a_request_body_is_the_limit() -> None:
    assert ListOf(INT).max_size == 3 * 1024 * 1024 // 2
    assert ListOf(Text()).max_size < ListOf(INT).max_size
    assert ListOf(INT, max_items=7).max_size == 7
    assert MapOf(INT, max_properties=3).max_size == 3
    assert Text(max_length=5).max_size == 5
