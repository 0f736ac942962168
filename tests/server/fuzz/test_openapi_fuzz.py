"""Every operation of the OpenAPI document, asked with thousands of good and bad requests."""

from __future__ import annotations

import pytest
from hostile_world import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_requests import Document
from tests.build.examples import examples

FUZZ = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def document(world: World) -> Document:
    return Document(world)


def test_every_operation_answers_good_and_bad_requests(world: World, document: Document) -> None:
    for operation in range(len(document.operations)):
        for seed in range(4):
            world.ask(*document.case(seed * 1_000 + operation, operation))


@settings(FUZZ, max_examples=examples(1_500))
@given(seed=st.integers(0, 2**48))
def test_no_request_makes_the_server_fail(world: World, document: Document, seed: int) -> None:
    world.ask(*document.case(seed))


@pytest.mark.slow
@settings(FUZZ, max_examples=examples(60_000))
@given(seed=st.integers(0, 2**48))
def test_no_request_of_very_many_makes_the_server_fail(world: World, document: Document, seed: int) -> None:
    world.ask(*document.case(seed))
