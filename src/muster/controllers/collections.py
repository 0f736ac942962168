"""The collections of a server: every resource that can be listed, watched and deleted. Custom kinds come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from muster.api.resources import Resource

Handler = Callable[[Resource], None]


class Collections:
    """The resources there are now, and who wants to know of new ones."""

    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self._resources = {(each.group, each.plural): each for each in resources}
        self._added: list[Handler] = []
        self._removed: list[Handler] = []

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._resources.values()))

    def on_change(self, added: Handler, removed: Handler) -> None:
        self._added.append(added)
        self._removed.append(removed)

    def get(self, group: str, plural: str) -> Resource | None:
        return self._resources.get((group, plural))

    def add(self, resource: Resource) -> None:
        """Make a resource known, instead of what its group and plural stood for before."""
        known = self.get(resource.group, resource.plural)
        if known == resource:
            return
        if known is not None:
            self.remove(known)
        self._resources[resource.group, resource.plural] = resource
        for handler in self._added:
            handler(resource)

    def remove(self, resource: Resource) -> None:
        if self._resources.pop((resource.group, resource.plural), None) is not None:
            for handler in self._removed:
                handler(resource)
