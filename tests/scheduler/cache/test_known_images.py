"""Images of nodes: each distinct one once, for as long as a node has it."""

from __future__ import annotations

import pytest

from muster.api.types import ContainerImage
from muster.scheduler.cache.known_images import KnownImages, image_name


def an_image(*names: str, size: int = 1) -> ContainerImage:
    return ContainerImage(names, size)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("app", "app:latest"),
        ("app:1", "app:1"),
        ("host:5000/app", "host:5000/app:latest"),
        ("host:5000/app:1", "host:5000/app:1"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(given, expected):
    assert image_name(given) == expected


def test_equal_images_are_exchanged_for_the_first():
    images, first = KnownImages(), an_image("app:1")
    assert images.add((first,))[0] is first
    assert images.add((an_image("app:1"), an_image("db:1")))[0] is first


def test_images_are_found_by_each_of_their_names():
    images = KnownImages()
    images.add((an_image("app", "app:1"), an_image("app:1", size=2)))
    assert images.named("app:latest") == {an_image("app", "app:1")}
    assert images.named("app:1") == {an_image("app", "app:1"), an_image("app:1", size=2)}
    assert images.named("db:1") == set()


def test_an_image_is_forgotten_with_the_last_node_that_has_it():
    images = KnownImages()
    images.add((an_image("app:1"),))
    images.add((an_image("app:1"),))
    images.remove((an_image("app:1"),))
    assert images.named("app:1")
    images.remove((an_image("app:1"),))
    assert not images.named("app:1")
    again = an_image("app:1")
    assert images.add((again,))[0] is again
