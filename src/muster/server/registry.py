"""All kinds that the server serves, by group, version and plural.

Built-in kinds are there from the start; those of CustomResourceDefinitions come and go (`serve`). Whoever keeps pages
made of the registry compares `generation` to see whether it has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from muster.server.codec import View
from muster.server.resources.kind import Kind

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")


class Registry:
    """The served kinds. Built once, by `muster.server.served_kinds`."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.built_in = tuple(kinds)
        self.generation = 0
        self.kinds: tuple[Kind, ...] = ()
        self._views: dict[tuple[str, str, str], View] = {}
        self.serve(())

    def serve(self, custom: Iterable[Kind]) -> None:
        """Serve these kinds beside the built-in ones, instead of those before. A kind that stays keeps its view."""
        before = self._views
        self.kinds = (*self.built_in, *custom)
        self._by_resource: dict[tuple[str, str], Kind] = {}
        self._views = {}
        for kind in self.kinds:
            self._by_resource.setdefault((kind.group, kind.plural), kind)
            for version in kind.versions:
                at = (kind.group, version, kind.plural)
                known = before.get(at)
                self._views[at] = known if known is not None and known.kind is kind else View(kind, version)
        self.generation += 1

    def kind(self, group: str, plural: str) -> Kind | None:
        """A kind; of a custom kind with several versions, the preferred one."""
        return self._by_resource.get((group, plural))

    def view(self, group: str, version: str, plural: str) -> View | None:
        """A kind in one of its served versions."""
        return self._views.get((group, version, plural))

    def groups(self) -> dict[str, tuple[str, ...]]:
        """The groups and their versions, each in order of preference; the core group is the empty one."""
        found: dict[str, list[str]] = {}
        for kind in self.kinds:
            versions = found.setdefault(kind.group, [])
            versions.extend(version for version in kind.versions if version not in versions)
        return {group: tuple(sorted(versions, key=preference)) for group, versions in found.items()}

    def in_version(self, group: str, version: str) -> list[Kind]:
        return [kind for kind in self.kinds if kind.group == group and version in kind.versions]


def preference(version: str) -> tuple[int, int, int, str]:
    """Sort key of versions: v2 before v1 before v1beta1 before v1alpha2, and any other word after those."""
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return (3, 0, 0, version)
    major, stage, minor = parts.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), "")
