"""Serves what the stored definitions define: the registry follows their table.

`follow` compares one number before each request, so that a kind is served from the first request after its definition
was stored, and no task, delay or restart stands between them.
"""

from __future__ import annotations

import logging

from muster.logs import keys
from muster.server import codec
from muster.server.custom_resources.conversion import Post
from muster.server.custom_resources.custom_kind import kinds_of
from muster.server.custom_resources.definition_rules import is_true
from muster.server.custom_resources.definition_status import GROUP, PLURAL
from muster.server.registry import Registry
from muster.server.resources.kind import Kind, Obj
from muster.server.store.base import Store
from muster.server.store.records import Record

log = logging.getLogger(__name__)


class Definitions:
    """Keeps a registry equal to the definitions in a store."""

    def __init__(self, store: Store, registry: Registry, post: Post) -> None:
        self._registry = registry
        self._store = store
        self._post = post
        self._kind = registry.kind(GROUP, PLURAL)
        self._table = store.table(self._kind.table) if self._kind is not None else None
        self._position = -1
        self._known: dict[str, tuple[int, tuple[Kind, ...]]] = {}  # by uid, at a revision

    def follow(self) -> None:
        """Take in what has changed since the last time."""
        if self._table is None or self._table.end == self._position:
            return
        self._position = self._table.end
        before, self._known = self._known, {}
        for record in self._table.scan():
            known = before.get(record.uid)
            if known is None or known[0] != record.revision:
                known = (record.revision, self._kinds(record, known[1] if known else ()))
            self._known[record.uid] = known
        served = self._registry.kinds
        self._registry.serve([kind for _, kinds in self._known.values() for kind in kinds if self._may_serve(kind)])
        if len(self._registry.kinds) < len(served):
            self._store.wake()  # watches of what is gone end

    def _may_serve(self, kind: Kind) -> bool:
        """A group and version that is built in belongs to the server alone."""
        return not any(
            each.group == kind.group and kind.versions[0] in each.versions for each in self._registry.built_in
        )

    def _kinds(self, record: Record, before: tuple[Kind, ...]) -> tuple[Kind, ...]:
        assert self._kind is not None
        definition: Obj = codec.load(self._kind, record)
        if not is_true(definition, "Established"):
            return ()
        try:
            return kinds_of(definition, self._post)
        except Exception:
            # One definition that cannot be read must not take the other kinds away.
            log.exception("A definition is not served", extra=keys(name=record.key[1]))
            return before
