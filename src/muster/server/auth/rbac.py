"""RBAC over the stored roles and bindings: deny unless a rule allows.

The policy is compiled from the store when one of its four tables has changed, so a new binding works with the next
request. What a user may do in a namespace is compiled once and remembered until then: a request on a hot path costs
two dictionary look-ups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import msgspec

from muster.api.errors import ApiError, forbidden
from muster.api.selectors import matches
from muster.api.types import LabelSelector
from muster.server.auth.rules import Action, Rule, Ruleset, covers
from muster.server.request import User
from muster.server.store.table import Table

GROUP = "rbac.authorization.k8s.io"
MASTERS = "system:masters"
TABLES = tuple(f"{plural}.{GROUP}" for plural in ("clusterroles", "roles", "clusterrolebindings", "rolebindings"))
_MOST_USERS = 10_000


class Tables(Protocol):
    """The part of a store that is read here."""

    def table(self, name: str) -> Table: ...


class _Meta(msgspec.Struct):
    labels: dict[str, str] | None = None


class Aggregation(msgspec.Struct, rename="camel"):
    cluster_role_selectors: list[LabelSelector] | None = None


class Role(msgspec.Struct, rename="camel"):
    metadata: _Meta
    rules: tuple[Rule, ...] | None = None
    aggregation_rule: Aggregation | None = None


class _Identity(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class RoleName(msgspec.Struct):
    """As much of a role as its followers need: that it changed."""

    metadata: _Identity


class Subject(msgspec.Struct, frozen=True):
    kind: str
    name: str
    namespace: str = ""

    def key(self, namespace: str) -> tuple[str, str]:
        """Under which a user finds this subject: a service account is the user that its tokens name."""
        if self.kind == "ServiceAccount":
            return ("User", f"system:serviceaccount:{self.namespace or namespace}:{self.name}")
        return (self.kind, self.name)


class RoleRef(msgspec.Struct, frozen=True):
    kind: str
    name: str


class _Binding(msgspec.Struct, rename="camel"):
    role_ref: RoleRef
    subjects: tuple[Subject, ...] | None = None


class Grant(NamedTuple):
    """One binding, from the side of one of its subjects."""

    binding: str
    namespace: str  # "" for a ClusterRoleBinding
    role: RoleRef
    subject: Subject


_decode_role = msgspec.json.Decoder(Role).decode
_decode_binding = msgspec.json.Decoder(_Binding).decode


class Policy:
    """The roles and bindings as they are at one moment."""

    def __init__(self, tables: Tables) -> None:
        self._cluster_roles = {key[1]: _decode_role(r.body) for key, r in tables.table(TABLES[0]).records.items()}
        self._roles = {key: _decode_role(record.body) for key, record in tables.table(TABLES[1]).records.items()}
        self._everywhere: dict[tuple[str, str], list[Grant]] = {}
        self._inside: dict[str, dict[tuple[str, str], list[Grant]]] = {}
        for name in TABLES[2:]:
            for (namespace, binding), record in tables.table(name).records.items():
                self._add(namespace, binding, _decode_binding(record.body))

    def _add(self, namespace: str, name: str, binding: _Binding) -> None:
        index = self._inside.setdefault(namespace, {}) if namespace else self._everywhere
        for subject in binding.subjects or ():
            grant = Grant(name, namespace, binding.role_ref, subject)
            index.setdefault(subject.key(namespace), []).append(grant)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Every binding that names the user or one of its groups and applies in the namespace."""
        keys = [("User", user.name), *(("Group", group) for group in user.groups)]
        inside = self._inside.get(namespace, {}) if namespace else {}
        for index in (self._everywhere, inside):
            for key in keys:
                yield from index.get(key, ())

    def rules(self, role: RoleRef, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a role; None when it does not exist."""
        if role.kind == "Role":
            found = self._roles.get((namespace, role.name))
            return None if found is None else found.rules or ()
        found = self._cluster_roles.get(role.name)
        return None if found is None else self._aggregated(found)

    def outdated_aggregates(self) -> list[tuple[str, tuple[Rule, ...]]]:
        """Aggregated cluster roles whose stored rules are not what they gather, with what they should be."""
        found = ((name, role, self._aggregated(role)) for name, role in self._cluster_roles.items())
        return [
            (name, rules)
            for name, role, rules in found
            if role.aggregation_rule is not None and set(role.rules or ()) != set(rules)
        ]

    def _aggregated(self, role: Role, inside: tuple[int, ...] = ()) -> tuple[Rule, ...]:
        """The rules of all cluster roles that an aggregation selects, each once; roles may select each other."""
        if role.aggregation_rule is None:
            return role.rules or ()
        if id(role) in inside:
            return ()
        selectors = role.aggregation_rule.cluster_role_selectors or ()
        gathered: dict[Rule, None] = {}
        for name in sorted(self._cluster_roles):
            other = self._cluster_roles[name]
            if any(matches(selector, other.metadata.labels) for selector in selectors):
                gathered.update(dict.fromkeys(self._aggregated(other, (*inside, id(role)))))
        return tuple(gathered)


class NodeRights(Protocol):
    """Says what nodes may do beside what roles allow."""

    def allows(self, user: User, action: Action) -> bool: ...


class Authorizer:
    """Answers "may this user do this?" from the stored policy."""

    def __init__(self, tables: Tables, nodes: NodeRights | None = None) -> None:
        self._tables = tables
        self._nodes = nodes
        self._seen: tuple[int, ...] = ()
        self._policy: Policy | None = None
        self._rulesets: dict[tuple[str, tuple[str, ...], str], Ruleset] = {}

    @property
    def policy(self) -> Policy:
        """The current policy; compiled again after a change."""
        table = self._tables.table
        seen = (table(TABLES[0]).end, table(TABLES[1]).end, table(TABLES[2]).end, table(TABLES[3]).end)
        if self._policy is None or seen != self._seen:
            self._policy = Policy(self._tables)
            self._seen = seen
            self._rulesets.clear()
        return self._policy

    def allows(self, user: User, action: Action) -> bool:
        if MASTERS in user.groups or self.ruleset(user, action.namespace).allows(action):
            return True
        return self._nodes is not None and self._nodes.allows(user, action)

    def ruleset(self, user: User, namespace: str) -> Ruleset:
        """All rules of a user in a namespace ("" for cluster scope)."""
        policy = self.policy
        key = (user.name, user.groups, namespace)
        found = self._rulesets.get(key)
        if found is None:
            if len(self._rulesets) > _MOST_USERS:
                self._rulesets.clear()
            found = self._rulesets[key] = Ruleset(self._rules(policy, user, namespace))
        return found

    @staticmethod
    def _rules(policy: Policy, user: User, namespace: str) -> Iterator[Rule]:
        for grant in policy.grants(user, namespace):
            yield from policy.rules(grant.role, grant.namespace) or ()

    def reason(self, user: User, action: Action) -> str:
        """Which binding allows an action, or which missing role stands in the way; slow, for reviews and refusals."""
        policy = self.policy
        missing: list[str] = []
        for grant in policy.grants(user, action.namespace):
            rules = policy.rules(grant.role, grant.namespace)
            if rules is None:
                missing.append(f'{grant.role.kind.lower()}.{GROUP} "{grant.role.name}" not found')
            elif any(covers(rule, action) for rule in rules):
                return f"RBAC: allowed by {_words(grant)}"
        if not missing:
            return ""
        return "RBAC: " + (missing[0] if len(missing) == 1 else f"[{', '.join(dict.fromkeys(missing))}]")

    def check(self, user: User, action: Action) -> None:
        """Nothing when the action is allowed, 403 in Kubernetes' words when it is not."""
        if not self.allows(user, action):
            raise refusal(user, action, self.reason(user, action))


def _words(grant: Grant) -> str:
    kind, name = (
        ("RoleBinding", f"{grant.binding}/{grant.namespace}")
        if grant.namespace
        else ("ClusterRoleBinding", grant.binding)
    )
    subject = grant.subject
    who = f"{subject.name}/{subject.namespace or grant.namespace}" if subject.kind == "ServiceAccount" else subject.name
    return f'{kind} "{name}" of {grant.role.kind} "{grant.role.name}" to {subject.kind} "{who}"'


def refusal(user: User, action: Action, reason: str = "") -> ApiError:
    """The 403 that kubectl users know."""
    because = f": {reason}" if reason else ""
    if action.path:
        why = f'User "{user.name}" cannot {action.verb} path "{action.path}"{because}'
        return ApiError(403, "Forbidden", f"forbidden: {why}", {})
    place = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    why = (
        f'User "{user.name}" cannot {action.verb} resource "{action.target}" in API group "{action.group}" '
        f"{place}{because}"
    )
    return forbidden(action.group, action.resource, action.name, why)


def describe(rules: Iterable[Rule]) -> str:
    """Rules as an escalation refusal lists them."""
    texts: list[str] = []
    for rule in rules:
        parts: list[str] = []
        if rule.api_groups:
            parts.append(f"APIGroups:{_quoted(rule.api_groups)}")
        if rule.resources:
            parts.append(f"Resources:{_quoted(rule.resources)}")
        if rule.resource_names:
            parts.append(f"ResourceNames:{_quoted(rule.resource_names)}")
        if rule.non_resource_urls:
            parts.append(f"NonResourceURLs:{_quoted(rule.non_resource_urls)}")
        parts.append(f"Verbs:{_quoted(rule.verbs)}")
        texts.append("{" + ", ".join(parts) + "}")
    return "\n".join(texts)


def _quoted(words: Iterable[str]) -> str:
    return "[" + " ".join(f'"{word}"' for word in words) + "]"
