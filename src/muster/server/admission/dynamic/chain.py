"""The order in which configured admission is asked, compiled anew when a configuration changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from muster.cel.environment import Library
from muster.server.admission.dynamic import webhooks
from muster.server.admission.dynamic.attributes import Attributes
from muster.server.admission.dynamic.matching import GROUP
from muster.server.admission.dynamic.mutating_policies import MutatingPolicy
from muster.server.admission.dynamic.policies import Binding, Kinds, Policy
from muster.server.admission.dynamic.validating_policies import ValidatingPolicy
from muster.server.admission.dynamic.webhook_client import WebhookClient
from muster.server.admission.dynamic.webhooks import Webhook
from muster.server.resources.kind import Kind, Obj, Write
from muster.server.resources.rules.policy_expressions import UNDECIDED
from muster.server.store.table import Table

_TABLES = tuple(
    f"{plural}.{GROUP}"
    for plural in (
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    )
)
_decode: Callable[[bytes], Any] = msgspec.json.decode
P = TypeVar("P", bound=Policy)


class Tables(Protocol):
    """The part of a store that is read here."""

    def table(self, name: str) -> Table: ...


class Configured(NamedTuple):
    """Everything that is configured at one moment, compiled."""

    mutating_hooks: Sequence[Webhook] = ()
    validating_hooks: Sequence[Webhook] = ()
    mutating: Sequence[tuple[MutatingPolicy, list[Binding]]] = ()
    validating: Sequence[tuple[ValidatingPolicy, list[Binding]]] = ()

    @property
    def any(self) -> bool:
        return bool(self.mutating_hooks or self.validating_hooks or self.mutating or self.validating)


class _NoKinds:
    kinds: tuple[Kind, ...] = ()


class DynamicAdmission:
    """Asks the configured webhooks and policies about writes."""

    def __init__(
        self,
        tables: Tables,
        client: WebhookClient | None = None,
        library: Library = UNDECIDED,
        kinds: Kinds | None = None,
    ) -> None:
        self._tables = tables
        self._library = library
        self._kinds: Kinds = kinds or _NoKinds()
        self.client = client or WebhookClient()
        self._watched = tuple(tables.table(name) for name in _TABLES)
        self._seen = -1
        self._configured = Configured()

    def asked(self, write: Write) -> bool:
        """Whether anything is configured that could be asked about this write."""
        if write.kind.group == GROUP:
            return False
        a, b, c, d, e, f = self._watched
        seen = a.end + b.end + c.end + d.end + e.end + f.end  # each only grows
        if seen != self._seen:
            self._configured = self._compiled()
            self._seen = seen
        return self._configured.any

    async def mutate(self, write: Write, new: Obj | None, old: Obj | None) -> Obj | None:
        """The object after mutating admission; the same one where nothing changed it."""
        attributes = Attributes(write, new, old)
        configured = self._about(write)
        self._mutate_by_policies(configured, attributes)
        if await webhooks.mutate(configured.mutating_hooks, self.client, attributes):
            again = [(policy, bindings) for policy, bindings in configured.mutating if policy.again]
            for policy, bindings in again:
                policy.mutate(bindings, attributes, self._kinds)
        return attributes.new

    def _about(self, write: Write) -> Configured:
        """Who may be asked about a write: reviews are shown to webhooks only."""
        configured = self._configured
        return configured if write.kind.answer is None else configured._replace(mutating=(), validating=())

    def _mutate_by_policies(self, configured: Configured, attributes: Attributes) -> None:
        """In order; those that ask for it once more where a later one changed the object."""
        changed = [policy.mutate(bindings, attributes, self._kinds) for policy, bindings in configured.mutating]
        last = max((at for at, made in enumerate(changed) if made), default=-1)
        for policy, bindings in configured.mutating[: max(last, 0)]:
            if policy.again:
                policy.mutate(bindings, attributes, self._kinds)

    async def validate(self, write: Write, new: Obj | None, old: Obj | None) -> None:
        """Raises ApiError where validating admission refuses the write."""
        attributes = Attributes(write, new, old)
        configured = self._about(write)
        for policy, bindings in configured.validating:
            policy.validate(bindings, attributes, self._kinds)
        await webhooks.validate(configured.validating_hooks, self.client, attributes)

    async def close(self) -> None:
        await self.client.close()

    def _compiled(self) -> Configured:
        mutating_hooks, validating_hooks, mutating, mutating_bindings, validating, validating_bindings = _TABLES
        return Configured(
            self._webhooks(mutating_hooks),
            self._webhooks(validating_hooks),
            self._policies(MutatingPolicy, mutating, mutating_bindings),
            self._policies(ValidatingPolicy, validating, validating_bindings),
        )

    def _webhooks(self, table: str) -> list[Webhook]:
        """All webhooks, by the name of their configuration and then in its order."""
        return [
            Webhook(name, spec, self._library)
            for name, configuration in self._objects(table)
            for spec in configuration.get("webhooks") or ()
        ]

    def _policies(
        self, make: Callable[[str, Obj, Library], P], table: str, bound: str
    ) -> list[tuple[P, list[Binding]]]:
        """The policies that are in force, each with its bindings."""
        by_policy: dict[str, list[Binding]] = {}
        for name, binding in self._objects(bound):
            made = Binding(name, binding["spec"])
            by_policy.setdefault(made.policy, []).append(made)
        return [
            (make(name, policy["spec"], self._library), by_policy[name])
            for name, policy in self._objects(table)
            if name in by_policy
        ]

    def _objects(self, table: str) -> list[tuple[str, Obj]]:
        records = self._tables.table(table).records
        return [(name, _decode(record.body)) for (_, name), record in sorted(records.items())]
