"""The profiles of the property tests: `quick` tries a quarter, `full` everything."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.build.examples import examples, sampled


@pytest.fixture(params=["quick", "full"])
def profile(request: pytest.FixtureRequest) -> Iterator[str]:
    before = settings.get_current_profile_name()
    settings.load_profile(request.param)
    yield request.param
    settings.load_profile(before)


def test_examples_and_cases_are_the_share_of_the_profile(profile: str):
    quick = profile == "quick"
    assert examples(200) == (50 if quick else 200)
    assert examples(3) == (1 if quick else 3)
    assert list(sampled(range(10))) == ([0, 4, 8] if quick else list(range(10)))


def test_only_the_quick_profile_draws_the_same_examples_each_time_outside_of_ci(profile: str):
    assert settings.default.derandomize == (profile == "quick" or "CI" in os.environ)
