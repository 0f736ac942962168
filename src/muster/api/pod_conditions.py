"""What rules about pods are made of: conditions and parts of names, each as a function of a pod and as an expression.

An expression is text of the Common Expression Language over three variables: `variables.labels`,
`variables.annotations` and `variables.owners`, the controller references of the pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from muster.api.resources import Resource

SHORT_UID = 8


class Facts(NamedTuple):
    """What the rules read of a pod."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]  # at least those in ANNOTATIONS
    owner_group: str = ""  # of the controller reference
    owner_kind: str = ""
    owner_name: str = ""
    owner_uid: str = ""


# --- conditions ------------------------------------------------------------------------------------


class Condition(Protocol):
    """One condition of a rule: as a function, and as an expression over `variables`."""

    def holds(self, pod: Facts) -> bool: ...

    def expression(self) -> str: ...


@dataclass(frozen=True, slots=True)
class HasLabel:
    """The label is there and not empty."""

    key: str

    def holds(self, pod: Facts) -> bool:
        return bool(pod.labels.get(self.key))

    def expression(self) -> str:
        return f"({_in_labels(self.key)} && {_label(self.key)} != '')"


@dataclass(frozen=True, slots=True)
class LabelIs:
    key: str
    value: str

    def holds(self, pod: Facts) -> bool:
        return pod.labels.get(self.key) == self.value

    def expression(self) -> str:
        return f"({_in_labels(self.key)} && {_label(self.key)} == {_quoted(self.value)})"


@dataclass(frozen=True, slots=True)
class HasAnnotation:
    """The annotation is there, whatever it says."""

    key: str

    def holds(self, pod: Facts) -> bool:
        return self.key in pod.annotations

    def expression(self) -> str:
        return f"{_quoted(self.key)} in variables.annotations"


@dataclass(frozen=True, slots=True)
class AnnotationIs:
    key: str
    value: str

    def holds(self, pod: Facts) -> bool:
        return pod.annotations.get(self.key) == self.value

    def expression(self) -> str:
        key = _quoted(self.key)
        return f"({key} in variables.annotations && variables.annotations[{key}] == {_quoted(self.value)})"


@dataclass(frozen=True, slots=True)
class ControlledBy:
    """The controller reference names this kind, in any version of its API."""

    resource: Resource

    def holds(self, pod: Facts) -> bool:
        return pod.owner_kind == self.resource.kind and pod.owner_group == self.resource.group

    def expression(self) -> str:
        kind, group = _quoted(self.resource.kind), _quoted(f"{self.resource.group}/")
        owner = "variables.owners[0]"
        return f"(size(variables.owners) > 0 && {owner}.kind == {kind} && {owner}.apiVersion.startsWith({group}))"


@dataclass(frozen=True, slots=True)
class ControlledByGroup:
    """The controller reference names any kind of this API group."""

    group: str

    def holds(self, pod: Facts) -> bool:
        return pod.owner_group == self.group

    def expression(self) -> str:
        group = _quoted(f"{self.group}/")
        return f"(size(variables.owners) > 0 && variables.owners[0].apiVersion.startsWith({group}))"


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition

    def holds(self, pod: Facts) -> bool:
        return not self.condition.holds(pod)

    def expression(self) -> str:
        return f"!({self.condition.expression()})"


# --- parts of a name -------------------------------------------------------------------------------


class Part(Protocol):
    """A part of a leaf's name. It is only asked for where the conditions of its rule hold."""

    def text(self, pod: Facts) -> str: ...

    def expression(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Text:
    value: str

    def text(self, pod: Facts) -> str:
        return self.value

    def expression(self) -> str:
        return _quoted(self.value)


@dataclass(frozen=True, slots=True)
class Label:
    """The value of a label, or as many of its first characters."""

    key: str
    first: int = 0

    def text(self, pod: Facts) -> str:
        value = pod.labels[self.key]
        return value[: self.first] if self.first else value

    def expression(self) -> str:
        return _first(_label(self.key), self.first) if self.first else _label(self.key)


@dataclass(frozen=True, slots=True)
class OwnerName:
    def text(self, pod: Facts) -> str:
        return pod.owner_name

    def expression(self) -> str:
        return "variables.owners[0].name"


@dataclass(frozen=True, slots=True)
class OwnerUid:
    """The first characters of the uid in the controller reference."""

    def text(self, pod: Facts) -> str:
        return pod.owner_uid[:SHORT_UID]

    def expression(self) -> str:
        return _first("variables.owners[0].uid", SHORT_UID)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _in_labels(key: str) -> str:
    return f"{_quoted(key)} in variables.labels"


def _label(key: str) -> str:
    return f"variables.labels[{_quoted(key)}]"


def _first(value: str, count: int) -> str:
    return f"(size({value}) > {count} ? {value}.substring(0, {count}) : {value})"
