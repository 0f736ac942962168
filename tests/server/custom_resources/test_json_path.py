"""Paths of printer columns and selectable fields."""

from __future__ import annotations

from typing import Any

import pytest

from muster.server.custom_resources import json_path

OBJECT: dict[str, Any] = {
    "metadata": {"annotations": {"a.b/c": "x"}},
    "spec": {"items": [{"n": 1, "name": "one"}, {"n": 2, "name": "two"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.items[0].name", ["one"]),
        (".spec.items[-1].n", [2]),
        (".spec.items[*].n", [1, 2]),
        (".spec.items[0:1].n", [1]),
        (".metadata.annotations['a.b/c']", ["x"]),
        (".metadata.annotations.a\\.b/c", ["x"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type != 'Ready')].status", ["False"]),
        (".spec.items[?(@.n>1)].name", ["two"]),
        ("..name", ["one", "two"]),
        (".spec.none.at.all", []),
    ],
)
def test_values_are_found(path: str, found: list[Any]) -> None:
    assert json_path.find(OBJECT, path) == found


@pytest.mark.parametrize("path", ["spec", ".spec[", ".items[?(@.a && @.b)]", ".a[1,2]"])
def test_what_is_not_understood_is_said(path: str) -> None:
    assert json_path.complaint(path)


def test_paths_of_plain_fields() -> None:
    assert json_path.simple_fields(".spec.replicas") == ("spec", "replicas")
    assert json_path.simple_fields(".spec.items[0]") is None
