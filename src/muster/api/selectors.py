"""Who is meant: label selectors, field selectors, node selector terms and tolerations, as Kubernetes reads them.

A selector that was never given (None) matches nothing, an empty one matches everything; a node
selector term is the other way round: empty, it matches nothing. A requirement that Kubernetes could
not compile (unknown operator, wrong number of values) never matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from muster.api.types import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from muster.api.validation import formats

_NO_LABELS: Mapping[str, str] = {}
_INT64 = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)


class Requirement(NamedTuple):
    """One condition on one label: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class FieldRequirement(NamedTuple):
    """One condition of a field selector."""

    field: str
    equal: bool
    value: str


# --- labels ----------------------------------------------------------------------------------------


def satisfies(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether labels meet one requirement. `NotIn` and `DoesNotExist` hold where the key is absent."""
    key, operator, values = requirement
    found = labels.get(key)
    match operator:
        case "In":
            return found is not None and found in values
        case "NotIn":
            return bool(values) and (found is None or found not in values)
        case "Exists":
            return found is not None and not values
        case "DoesNotExist":
            return found is None and not values
        case "Gt" | "Lt":
            return _compares(operator, found, values)
        case _:
            return False


def _compares(operator: str, found: str | None, values: Sequence[str]) -> bool:
    left = _int64(found) if found is not None else None
    right = _int64(values[0]) if len(values) == 1 else None
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def _int64(text: str) -> int | None:
    if not _INT64.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def requirements(selector: LabelSelector) -> tuple[Requirement, ...]:
    """The conditions of a LabelSelector, all of which must hold."""
    labels = selector.match_labels or _NO_LABELS
    equal = tuple(Requirement(key, "In", (wanted,)) for key, wanted in labels.items())
    expressions = selector.match_expressions or ()
    return equal + tuple(Requirement(e.key, e.operator, e.values or ()) for e in expressions)


def matches(selector: LabelSelector | None, labels: Mapping[str, str] | None) -> bool:
    """Whether a LabelSelector selects an object's labels. None selects nothing, `{}` everything."""
    if selector is None:
        return False
    has = labels or _NO_LABELS
    if selector.match_labels:
        for key, wanted in selector.match_labels.items():
            if has.get(key) != wanted:
                return False
    for expression in selector.match_expressions or ():
        if expression.operator in ("Gt", "Lt"):
            return False  # only node selectors compare numbers
        if not satisfies(Requirement(expression.key, expression.operator, expression.values or ()), has):
            return False
    return True


def all_satisfied(conditions: Iterable[Requirement], labels: Mapping[str, str] | None) -> bool:
    """Whether labels meet every requirement; no requirement is met by all."""
    has = labels or _NO_LABELS
    return all(satisfies(condition, has) for condition in conditions)


# --- the text form, as in ?labelSelector= ------------------------------------------------------------

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SPECIAL = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """A label selector's text (`a=b,c in (d,e),!f`). Empty text selects everything; ValueError says what is wrong."""
    tokens = _Tokens(text)
    found: list[Requirement] = []
    while not tokens.done:
        found.append(_requirement(tokens))
        if not tokens.done:
            tokens.expect(",")
            if tokens.done:
                raise tokens.wrong("a label key after the comma")
    return tuple(found)


class _Tokens:
    """A cursor over the tokens of a selector."""

    def __init__(self, text: str) -> None:
        self.text = text
        stripped = text.strip()
        self._tokens: list[str] = [match.group(1) for match in _TOKEN.finditer(stripped)]
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._tokens)

    @property
    def next(self) -> str:
        return "" if self.done else self._tokens[self._at]

    def take(self) -> str:
        token = self.next
        self._at += 1
        return token

    def expect(self, token: str) -> None:
        if self.next != token:
            raise self.wrong(f"'{token}'")
        self._at += 1

    def word(self) -> str | None:
        """The next token if it is a name rather than an operator."""
        return None if self.done or self.next in _SPECIAL else self.take()

    def wrong(self, wanted: str) -> ValueError:
        found = f"'{self.next}'" if not self.done else "the end"
        return ValueError(f"unable to parse label selector {self.text!r}: found {found}, expected {wanted}")


def _requirement(tokens: _Tokens) -> Requirement:
    absent = tokens.next == "!"
    if absent:
        tokens.take()
    key = tokens.word()
    if key is None:
        raise tokens.wrong("a label key")
    _check(f"key {key!r}", formats.qualified_name(key))
    if absent:
        return Requirement(key, "DoesNotExist")
    if tokens.done or tokens.next == ",":
        return Requirement(key, "Exists")
    match tokens.take():
        case "=" | "==":
            requirement = Requirement(key, "In", (tokens.word() or "",))
        case "!=":
            requirement = Requirement(key, "NotIn", (tokens.word() or "",))
        case "in":
            requirement = Requirement(key, "In", _set(tokens))
        case "notin":
            requirement = Requirement(key, "NotIn", _set(tokens))
        case ">" | "<" as sign:
            return _comparison(key, sign, tokens.word() or "")
        case other:
            raise ValueError(f"unable to parse label selector {tokens.text!r}: {other!r} is not an operator")
    for wanted in requirement.values:
        _check(f"value {wanted!r} of {key!r}", formats.label_value(wanted))
    return requirement


def _comparison(key: str, sign: str, wanted: str) -> Requirement:
    if _int64(wanted) is None:
        raise ValueError(f"label {key!r} is compared with {wanted!r}: for '>' and '<' the value must be an integer")
    return Requirement(key, "Gt" if sign == ">" else "Lt", (wanted,))


def _set(tokens: _Tokens) -> tuple[str, ...]:
    tokens.expect("(")
    values = [tokens.word() or ""]
    while tokens.next == ",":
        tokens.take()
        values.append(tokens.word() or "")
    tokens.expect(")")
    return tuple(values)


def _check(what: str, complaints: list[str]) -> None:
    if complaints:
        raise ValueError(f"label selector: {what}: {complaints[0]}")


# --- the text form, as in ?fieldSelector= ------------------------------------------------------------

_FIELD_TERM = re.compile(r"((?:\\.|[^\\,])*)(?:,|$)")
_FIELD_PARTS = re.compile(r"([^=!]+)(!=|==|=)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """A field selector's text (`spec.nodeName=a,status.phase!=Failed`); a backslash escapes `,`, `=` and itself."""
    found: list[FieldRequirement] = []
    for match in _FIELD_TERM.finditer(text):
        term = match.group(1)
        if not term:
            continue
        parts = _FIELD_PARTS.fullmatch(term)
        if parts is None:
            raise ValueError(f"invalid field selector {text!r}: can't understand {term!r}")
        field, operator, wanted = parts.groups()
        found.append(FieldRequirement(field, operator != "!=", _unescape(wanted, text)))
    return tuple(found)


def _unescape(wanted: str, text: str) -> str:
    if "=" in _ESCAPE.sub("", wanted):
        raise ValueError(f"invalid field selector {text!r}: an '=' in a value must be written '\\='")

    def plain(match: re.Match[str]) -> str:
        if match.group(1) not in ("\\", ",", "="):
            raise ValueError(f"invalid field selector {text!r}: unknown escape {match.group(0)!r}")
        return match.group(1)

    return _ESCAPE.sub(plain, wanted)


# --- node selectors --------------------------------------------------------------------------------


def node_matches(selector: NodeSelector | None, name: str, labels: Mapping[str, str] | None) -> bool:
    """Whether a node is selected: any one term suffices. None and a selector without terms select no node."""
    if selector is None:
        return False
    return any(term_matches(term, name, labels) for term in selector.node_selector_terms or ())


def term_matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str] | None) -> bool:
    """Whether a node meets all expressions and fields of one term. An empty term selects no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    has = labels or _NO_LABELS
    for expression in term.match_expressions or ():
        if not satisfies(Requirement(expression.key, expression.operator, expression.values or ()), has):
            return False
    return all(_field_matches(wanted, name) for wanted in term.match_fields or ())


def _field_matches(requirement: NodeSelectorRequirement, name: str) -> bool:
    # Fields know only In and NotIn with exactly one value; metadata.name is the only field of a node here.
    values = requirement.values or ()
    if len(values) != 1:
        return False
    found = name if requirement.key == "metadata.name" else ""
    match requirement.operator:
        case "In":
            return found == values[0]
        case "NotIn":
            return found != values[0]
        case _:
            return False


# --- taints ----------------------------------------------------------------------------------------


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration accepts one taint. An empty effect or key accepts every effect or key."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case _:
            return False


def first_untolerated(
    taints: Iterable[Taint] | None,
    tolerations: Sequence[Toleration] | None,
    effects: frozenset[str] = frozenset(("NoSchedule", "NoExecute")),
) -> Taint | None:
    """The first taint with one of the effects that no toleration accepts, or None when all are accepted."""
    for taint in taints or ():
        if taint.effect in effects and not any(tolerates(toleration, taint) for toleration in tolerations or ()):
            return taint
    return None
