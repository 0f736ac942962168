"""Groups of a pattern stop capturing, and nothing else of it changes."""

from __future__ import annotations

import pytest

from muster.cel.functions.regex import find, find_all, without_groups


@pytest.mark.parametrize(
    ("pattern", "changed"),
    [
        ("abc", "abc"),
        ("(a)(b)", "(?:a)(?:b)"),
        ("(?:a)", "(?:a)"),
        ("(?i)a", "(?i)a"),
        ("(?P<name>a)", "(?:a)"),
        ("(?<name>a)", "(?:a)"),
        (r"\(a\)", r"\(a\)"),
        ("[(]", "[(]"),
        ("[]()]", "[]()]"),
        ("[^](]", "[^](]"),
        (r"\Q(\E(a)", r"\Q(\E(?:a)"),
        ("((a)|b)", "(?:(?:a)|b)"),
    ],
)
def test_groups_capture_nothing(pattern: str, changed: str) -> None:
    assert without_groups(pattern) == changed


def test_the_whole_match_is_found() -> None:
    assert find("xx12-34", "([0-9]+)-([0-9]+)") == "12-34"
    assert find_all("a1b22", "[a-z]([0-9]+)") == ["a1", "b22"]
    assert find_all("aaa", "a", 2) == ["a", "a"]
    assert find_all("aaa", "a", 0) == []


def test_a_wrong_pattern_is_an_error() -> None:
    with pytest.raises(ValueError, match="invalid regular expression"):
        find("a", "(")
