"""All kinds that the server serves, by group, version and plural."""

from __future__ import annotations

from collections.abc import Iterable

from muster.server.codec import View
from muster.server.resources.kind import Kind


class Registry:
    """The served kinds. Built once, by `muster.server.served_kinds`."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = tuple(kinds)
        self._by_resource = {(kind.group, kind.plural): kind for kind in self.kinds}
        self._views = {
            (kind.group, version, kind.plural): View(kind, version) for kind in self.kinds for version in kind.versions
        }

    def kind(self, group: str, plural: str) -> Kind | None:
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


def preference(version: str) -> tuple[int, int, int]:
    """Sort key of versions: v2 before v1 before v1beta1 before v1alpha2."""
    stable, _, rest = version.removeprefix("v").partition("beta")
    if rest:
        return (1, -int(stable), -int(rest))
    stable, _, rest = stable.partition("alpha")
    if rest:
        return (2, -int(stable), -int(rest))
    return (0, -int(stable), 0)
