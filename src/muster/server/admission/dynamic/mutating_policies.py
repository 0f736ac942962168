"""MutatingAdmissionPolicy: expressions that give what is to be changed: an apply configuration, or JSON patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muster.api.errors import ApiError
from muster.cel import CompileError, Program
from muster.cel.environment import Library
from muster.server.admission.dynamic.attributes import Attributes
from muster.server.admission.dynamic.policies import Binding, Case, Kinds, Policy, PolicyError, Refused, cases, refusal
from muster.server.apply import typed
from muster.server.patch import json_patch
from muster.server.resources.kind import Obj
from muster.server.resources.rules.mutation_expressions import APPLY, compiled, mutation_library

_KIND = "policy"  # Kubernetes' word in refusals
_REJECTED = "the server rejected our request due to an error in our request: "
_GUARDED = ("apiVersion", "kind")


class _Mutation(NamedTuple):
    apply: bool
    program: Program | CompileError


class MutatingPolicy(Policy):
    """One policy."""

    def __init__(self, name: str, spec: Obj, library: Library) -> None:
        super().__init__(name, spec, mutation_library(library))
        self.again = spec.get("reinvocationPolicy") == "IfNeeded"
        self._mutations = [
            _Mutation(each.get("patchType") == APPLY, compiled(each, self.environment))
            for each in spec.get("mutations") or ()
        ]

    def mutate(self, bindings: Sequence[Binding], attributes: Attributes, kinds: Kinds) -> bool:
        """Change the object; whether that made a difference. Raises ApiError."""
        before = attributes.new
        if before is None:
            return False
        try:
            for case in list(cases(self, bindings, attributes, kinds)):
                for mutation in self._mutations:
                    self._mutate(mutation, case, attributes)
        except Refused as refused:
            raise refusal(_KIND, self, attributes, refused) from None
        return attributes.new != before

    def _mutate(self, mutation: _Mutation, case: Case, attributes: Attributes) -> None:
        """Each mutation sees what those before it left; variables are evaluated anew."""
        version, values = self.version(attributes), case.values
        current, _ = attributes.objects(version)
        assert current is not None
        values.set("object", current)
        values.forget("variables.")
        try:
            wanted = self.evaluate(mutation.program, values)
            changed = _applied(attributes, version, current, wanted) if mutation.apply else _patched(current, wanted)
        except PolicyError as error:
            if self.fails:
                raise Refused(case.binding, str(error)) from None
            return
        if changed != current:
            attributes.take(version, changed)


def _applied(attributes: Attributes, version: str, current: Obj, wanted: Any) -> Obj:
    """The object with a configuration merged into it, as server-side apply merges."""
    if not isinstance(wanted, dict):
        raise PolicyError("the result of an apply configuration must be an Object")
    schema = attributes.schema(version)
    configuration = {name: value for name, value in wanted.items() if name not in _GUARDED}
    try:
        schema.configuration({**{name: current.get(name) for name in _GUARDED}, **configuration})
        return typed.merge(current, configuration, schema.rule)
    except ApiError as error:
        raise PolicyError(f"error applying patch: {error.message}") from None
    except ValueError as error:
        raise PolicyError(f"error applying patch: {error}") from None


def _patched(current: Obj, wanted: Any) -> Obj:
    try:
        return json_patch.apply(current, wanted)
    except json_patch.FailedTestError:
        return current  # a patch that tests the object is for those that pass
    except ApiError as error:
        raise PolicyError(f"JSON Patch: {error.message.removeprefix(_REJECTED)}") from None
