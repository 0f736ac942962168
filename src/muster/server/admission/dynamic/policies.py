"""Admission policies: expressions that validate or change what is written, without anybody else being asked.

A policy is in force where a binding names it. The binding says where, with which parameters, and what a failed
validation means. Variables are evaluated when an expression first uses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from muster.api.errors import ApiError
from muster.api.selectors import matches
from muster.api.types import LabelSelector
from muster.cel import CompileError, Environment, EvaluationError, Program, Values, compile
from muster.cel.environment import Library
from muster.server import codec
from muster.server.admission.dynamic import conditions
from muster.server.admission.dynamic.attributes import Attributes
from muster.server.admission.dynamic.conditions import ConditionError
from muster.server.admission.dynamic.matching import Matcher, labels_of
from muster.server.admission.dynamic.values import request_values
from muster.server.resources.kind import Kind, Obj
from muster.server.resources.rules.policy_expressions import environment

_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_EVERYTHING = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
_NO_PARAMS = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"


class Kinds(Protocol):
    """The served kinds, among which the kind of parameters is looked up."""

    @property
    def kinds(self) -> Sequence[Kind]: ...


class PolicyError(Exception):
    """A policy that cannot be applied: its failure policy decides."""


class Policy:
    """What validating and mutating policies have in common."""

    def __init__(self, name: str, spec: Obj, library: Library) -> None:
        self.name = name
        self.fails = spec.get("failurePolicy", "Fail") != "Ignore"
        match: Obj = spec.get("matchConstraints") or {}
        self._matcher = Matcher(match, match.get("resourceRules") or (), match.get("excludeResourceRules") or ())
        self.param_kind: Obj | None = spec.get("paramKind")
        listed: Sequence[Obj] = spec.get("variables") or ()
        self.environment: Environment = environment(
            library, params=self.param_kind is not None, variables=tuple(each["name"] for each in listed)
        )
        self._variables = {
            f"variables.{each['name']}": compile(each["expression"], self.environment) for each in listed
        }
        self._conditions = conditions.compiled(spec.get("matchConditions") or (), self.environment)

    def version(self, attributes: Attributes) -> str:
        """The version in which the policy sees the write; empty where it is not about it."""
        return self._matcher.version(attributes)

    def applies(self, values: Values) -> bool:
        """Whether its conditions hold."""
        try:
            return conditions.hold(self._conditions, values)
        except ConditionError as error:
            raise PolicyError(str(error)) from None

    def evaluate(self, program: Program | CompileError, values: Values) -> Any:
        """The result of one of its expressions. Raises PolicyError."""
        if isinstance(program, CompileError):
            raise PolicyError(f"compilation error: {program.message}")
        problems = self._provide(program, values)
        try:
            return program.evaluate(values)
        except EvaluationError as error:
            # A variable without a value only counts where the expression needs it.
            why = problems[0] if problems else str(error)
            raise PolicyError(f"expression '{program.text}' resulted in error: {why}") from None

    def _provide(self, program: Program, values: Values) -> list[str]:
        """Evaluate the variables that a program uses, where that has not been done; what is wrong with them."""
        problems: list[str] = []
        for name in sorted(program.names & self._variables.keys()):
            if name in values:
                continue
            variable, shown = self._variables[name], name.removeprefix("variables.")
            if isinstance(variable, CompileError):
                problems.append(f'composited variable "{shown}" fails to compile: {variable.message}')
                continue
            inner = self._provide(variable, values)
            try:
                values.set(name, variable.evaluate(values))
            except EvaluationError as error:
                problems.append(f'composited variable "{shown}" fails to evaluate: {inner[0] if inner else error}')
        return problems


class Binding:
    """Where a policy is in force, and with which parameters."""

    def __init__(self, name: str, spec: Obj) -> None:
        self.name = name
        self.policy: str = spec.get("policyName", "")
        self.actions = frozenset[str](spec.get("validationActions") or ())
        match: Obj = spec.get("matchResources") or {}
        rules = match.get("resourceRules") or (_EVERYTHING,)
        self._matcher = Matcher(match, rules, match.get("excludeResourceRules") or ())
        self._ref: Obj | None = spec.get("paramRef")

    def covers(self, attributes: Attributes) -> bool:
        return bool(self._matcher.version(attributes))

    def params(self, policy: Policy, attributes: Attributes, kinds: Kinds) -> list[Obj | None]:
        """The parameters to evaluate the policy with, one after the other; [None] where it has none."""
        if policy.param_kind is None:
            return [None]
        kind, version = _param_kind(policy.param_kind, kinds)
        if self._ref is None:
            return [None]
        found = [codec.to_version(kind, version, codec.copy(each)) for each in self._found(kind, attributes)]
        if not found and self._ref.get("parameterNotFoundAction") == "Deny":
            raise PolicyError(_NO_PARAMS)
        return [*found]

    def _found(self, kind: Kind, attributes: Attributes) -> list[Obj]:
        ref = self._ref or {}
        namespace: str = ref.get("namespace") or ""
        if kind.namespaced and not namespace:
            namespace = attributes.write.namespace
            if not namespace:
                raise PolicyError(
                    "failed to configure binding: cannot use namespaced paramRef in policy binding that matches "
                    "cluster-scoped resources"
                )
        reader = attributes.write.reader
        if name := ref.get("name"):
            one = reader.get(kind.plural, kind.group, namespace, name)
            return [] if one is None else [one]
        selector = msgspec.convert(ref.get("selector") or {}, LabelSelector)
        listed = reader.list(kind.plural, kind.group, namespace)
        return [each for each in listed if matches(selector, labels_of(each))]


def _param_kind(given: Obj, kinds: Kinds) -> tuple[Kind, str]:
    group, _, version = given["apiVersion"].rpartition("/")
    for kind in kinds.kinds:
        if kind.group == group and kind.kind == given["kind"] and version in kind.versions:
            return kind, version
    shown = f"'{given['apiVersion']}, Kind={given['kind']}'"
    raise _Unconfigured(f"failed to configure policy: failed to find resource referenced by paramKind: {shown}")


class _Unconfigured(PolicyError):
    """A policy that is wrong whatever its binding is."""


class Case(NamedTuple):
    """A policy to be applied to a write through one binding, with one object of parameters."""

    binding: Binding
    values: Values


def cases(policy: Policy, bindings: Sequence[Binding], attributes: Attributes, kinds: Kinds) -> Iterator[Case]:
    """Everything that a policy is to be evaluated with. Raises Refused."""
    version = policy.version(attributes)
    if not version:
        return
    for binding in bindings:
        if not binding.covers(attributes):
            continue
        try:
            for params in binding.params(policy, attributes, kinds):
                values = request_values(attributes, version)
                if policy.param_kind is not None:
                    values.set("params", params)
                if policy.applies(values):
                    yield Case(binding, values)
        except PolicyError as error:
            if policy.fails:
                raise Refused(None if isinstance(error, _Unconfigured) else binding, str(error)) from None


class Refused(Exception):
    """A write that a policy refuses, or cannot judge."""

    def __init__(self, binding: Binding | None, why: str, reason: str = "Invalid") -> None:
        super().__init__(why)
        self.binding = binding
        self.why = why
        self.reason = reason


def refusal(kind: str, policy: Policy, attributes: Attributes, refused: Refused) -> ApiError:
    """The Status of a refused write."""
    resource = attributes.kind
    by = f"{kind} '{policy.name}'" + (f" with binding '{refused.binding.name}'" if refused.binding else "")
    cause = f"{by} denied request: {refused.why}"
    qualified = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    details: Mapping[str, Any] = {
        "name": attributes.write.name,
        **({"group": resource.group} if resource.group else {}),
        "kind": resource.plural,
        "causes": [{"message": cause}],
    }
    message = f'{qualified} "{attributes.write.name}" is forbidden: {cause}'
    return ApiError(_CODES[refused.reason], refused.reason, message, dict(details))
