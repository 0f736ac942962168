"""Names of claims that are made from templates."""

from __future__ import annotations

import pytest

from muster.api.types import PodResourceClaim
from muster.controllers.claim_objects import LONGEST_NAME, generated_name, same_entry


@pytest.mark.parametrize(
    ("owner", "entry", "name"),
    [
        ("p", "gpu", "p-gpu-"),
        ("o" * 100, "e" * 10, f"{'o' * 51}-{'e' * 6}-"),
        ("o" * 30, "e" * 60, f"{'o' * 19}-{'e' * 38}-"),
    ],
)
def test_long_names_are_cut_in_proportion(owner: str, entry: str, name: str) -> None:
    assert generated_name(owner, entry) == name
    assert len(name) <= LONGEST_NAME + 2


def test_an_entry_is_the_groups_only_if_name_and_source_are_the_same() -> None:
    entry = PodResourceClaim("gpu", None, "t")
    assert same_entry(entry, {"name": "gpu", "resourceClaimTemplateName": "t"})
    assert not same_entry(entry, {"name": "other", "resourceClaimTemplateName": "t"})
    assert not same_entry(entry, {"name": "gpu", "resourceClaimName": "t"})
