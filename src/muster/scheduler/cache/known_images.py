"""The container images of all nodes, each distinct one kept once.

Thousands of nodes have the same images, and every node comes with texts of its own for them. `add` gives the objects
that are known already in exchange, so that the others can be freed; which of them have a name is known without looking
at the nodes.
"""

from __future__ import annotations

from collections.abc import Set

from muster.api.types import ContainerImage

Images = tuple[ContainerImage, ...]


def image_name(name: str) -> str:
    """The name of an image with its tag, `latest` where it has none."""
    return name if name.rfind(":") > name.rfind("/") else name + ":latest"


class KnownImages:
    """Distinct images, and on how many nodes each is."""

    def __init__(self) -> None:
        self._known: dict[ContainerImage, tuple[ContainerImage, list[int]]] = {}  # the object, and its uses
        self._named: dict[str, set[ContainerImage]] = {}  # name -> the images that have it

    def add(self, images: Images) -> Images:
        """Count the images of a node; returns the known objects for them."""
        found: list[ContainerImage] = []
        for image in images:
            known = self._known.get(image)
            if known is None:
                known = self._known[image] = (image, [0])
                for name in image.names or ():
                    self._named.setdefault(image_name(name), set()).add(image)
            known[1][0] += 1
            found.append(known[0])
        return tuple(found)

    def remove(self, images: Images) -> None:
        """The images of a node are gone, or replaced."""
        for image in images:
            known, uses = self._known[image]
            uses[0] -= 1
            if not uses[0]:
                del self._known[image]
                self._forget_names(known)

    def _forget_names(self, image: ContainerImage) -> None:
        for name in {image_name(each) for each in image.names or ()}:
            named = self._named[name]
            named.discard(image)
            if not named:
                del self._named[name]

    def named(self, image: str) -> Set[ContainerImage]:
        """The images that have this name."""
        return self._named.get(image, frozenset())
