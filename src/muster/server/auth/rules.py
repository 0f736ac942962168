"""RBAC rules as values: what one rule covers, and what many rules together allow. Pure; no store, no cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

ALL = "*"


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One PolicyRule of a Role or ClusterRole."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")


class Action(NamedTuple):
    """What somebody wants to do. `path` is set for pages that are not resources; then the rest is empty."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    version: str = ""
    field_selector: str = ""  # of a list or watch

    @property
    def target(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def covers(rule: Rule, action: Action) -> bool:
    """Whether one rule allows one action."""
    if ALL not in rule.verbs and action.verb not in rule.verbs:
        return False
    if action.path:
        return _covers_path(rule.non_resource_urls, action.path)
    return (
        (ALL in rule.api_groups or action.group in rule.api_groups)
        and _covers_resource(rule.resources, action)
        and (not rule.resource_names or action.name in rule.resource_names)
    )


def _covers_resource(resources: tuple[str, ...], action: Action) -> bool:
    if ALL in resources or action.target in resources:
        return True
    return bool(action.subresource) and f"*/{action.subresource}" in resources


def _covers_path(patterns: tuple[str, ...], path: str) -> bool:
    return any(
        pattern in (ALL, path) or (pattern.endswith("*") and path.startswith(pattern[:-1])) for pattern in patterns
    )


class Ruleset:
    """All rules that apply to one user in one place, with the answers it has already given."""

    __slots__ = ("_answers", "rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(dict.fromkeys(rules))
        self._answers: dict[tuple[str, str, str, str], bool | tuple[Rule, ...]] = {}

    def allows(self, action: Action) -> bool:
        if action.path:
            return any(covers(rule, action) for rule in self.rules)
        key = (action.verb, action.group, action.resource, action.subresource)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) > 4096:  # the words come from requests; nobody may grow this for ever
                self._answers.clear()
            answer = self._answers[key] = self._evaluate(action)
        if isinstance(answer, bool):
            return answer
        return any(action.name in rule.resource_names for rule in answer)

    def _evaluate(self, action: Action) -> bool | tuple[Rule, ...]:
        """Yes or no for every name, or the rules that say yes to some names."""
        nameless = action._replace(name="")
        named: list[Rule] = []
        for rule in self.rules:
            if covers(rule, nameless):
                return True
            if rule.resource_names and covers(rule, action._replace(name=rule.resource_names[0])):
                named.append(rule)
        return tuple(named) if named else False


def uncovered(owned: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The parts of the wanted rules that the owned rules do not grant; the escalation check."""
    have = list(owned)
    return [piece for rule in wanted for piece in _pieces(rule) if not any(_grants(own, piece) for own in have)]


def _pieces(rule: Rule) -> Iterable[Rule]:
    """A rule as the smallest rules it is made of: one verb on one thing."""
    for verb in rule.verbs:
        for group in rule.api_groups:
            for resource in rule.resources:
                for name in rule.resource_names or ("",):
                    names = (name,) if rule.resource_names else ()
                    yield Rule((verb,), (group,), (resource,), names)
        for url in rule.non_resource_urls:
            yield Rule((verb,), non_resource_urls=(url,))


def _grants(own: Rule, piece: Rule) -> bool:
    if ALL not in own.verbs and piece.verbs[0] not in own.verbs:
        return False
    if piece.non_resource_urls:
        return _covers_path(own.non_resource_urls, piece.non_resource_urls[0])
    resource, _, subresource = piece.resources[0].partition("/")
    action = Action(piece.verbs[0], piece.api_groups[0], resource, subresource)
    return (
        (ALL in own.api_groups or piece.api_groups[0] in own.api_groups)
        and _covers_resource(own.resources, action)
        and (not own.resource_names or (bool(piece.resource_names) and piece.resource_names[0] in own.resource_names))
    )
