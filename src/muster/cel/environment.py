"""Variables and functions that expressions may use.

The evaluator is set up twice. One environment checks: it knows exact types, so that `quantity('1') < quantity('2')` and
unknown fields are refused with Kubernetes' words. The other one evaluates: plain dicts, and bytes for opaque values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from muster.cel import evaluator
from muster.cel.functions import CODECS, KUBERNETES
from muster.cel.functions.function import TIMES, Codec, Function, dispatcher, kinds, runtime_name
from muster.cel.messages import message_pool
from muster.cel.rewriting import Rewriting
from muster.cel.types import OptionalOf, Type, configured_type, evaluator_type, needs_configuration


class Library:
    """Functions, and the codecs of the types that they work on. Compared by identity: keep one and share it."""

    def __init__(self, functions: Sequence[Function], codecs: Sequence[Codec]) -> None:
        self.functions = (*KUBERNETES, *functions)
        self.codecs = (*CODECS, *codecs)
        self._added = (tuple(functions), tuple(codecs))

    def extended(self, functions: Sequence[Function]) -> Library:
        """The same functions and more."""
        own, codecs = self._added
        return Library((*own, *functions), codecs)


_COMMON = Library((), ())
# Functions of the language itself that also take opaque values: declared anew, as a whole.
_REDECLARED = ("string",)


class Environment:
    """What expressions of one sort are compiled and evaluated in. Making one costs milliseconds: keep it."""

    def __init__(self, variables: Mapping[str, Type], library: Library = _COMMON) -> None:
        self.variables = dict(variables)
        self.library = library
        functions = library.functions
        self.rewriting = Rewriting(
            frozenset(each.name for each in functions if isinstance(each.returns, OptionalOf)),
            frozenset(name for name, declared in self.variables.items() if isinstance(declared, OptionalOf)),
            frozenset(each.name for each in functions if each.returns.name in TIMES),
        )
        self.costs: dict[str, Function] = {each.name: each for each in functions if each.compute is not None}
        cel = evaluator.module()
        plain = {name: each for name, each in self.variables.items() if not needs_configuration(each)}
        others = {name: each for name, each in self.variables.items() if name not in plain}
        self.checker = evaluator.new_environment(
            {name: evaluator_type(each, cel) for name, each in plain.items()},
            _declarations(library),
            declared=_declared_functions(library) + _declared_variables(others),
            messages=message_pool(self.variables.values()),
        )
        self.runtime = _runtime(library, frozenset(self.variables))

    def extended(self, variables: Mapping[str, Type]) -> Environment:
        """The same environment with more variables."""
        return Environment({**self.variables, **variables}, self.library)


def _opaque_names(functions: Sequence[Function]) -> frozenset[str]:
    """Functions that have an opaque type in one of their signatures."""
    return frozenset(
        each.name
        for each in functions
        if each.declared and any(map(needs_configuration, (each.returns, *each.parameters)))
    )


@lru_cache(maxsize=8)
def _declarations(library: Library) -> list[Any]:
    """The signatures without opaque types, for the check."""
    cel = evaluator.module()
    elsewhere = _opaque_names(library.functions)
    by_name: dict[str, list[Any]] = {}
    for each in library.functions:
        if each.declared and each.name not in elsewhere:
            overload = cel.Overload(
                each.id,
                return_type=evaluator_type(each.returns, cel),
                parameters=[evaluator_type(parameter, cel) for parameter in each.parameters],
                is_member=each.member,
            )
            by_name.setdefault(each.name, []).append(overload)
    return [cel.FunctionDecl(name, overloads) for name, overloads in by_name.items()]


@lru_cache(maxsize=8)
def _declared_functions(library: Library) -> str:
    """The signatures with opaque types, in the evaluator's configuration (JSON is YAML)."""
    chosen = _opaque_names(library.functions)
    by_name: dict[str, list[Any]] = {}
    for each in library.functions:
        if each.declared and each.name in chosen:
            parameters = [configured_type(parameter) for parameter in each.parameters]
            overload: dict[str, Any] = {"id": each.id, "return": configured_type(each.returns)}
            if each.member:
                overload["target"] = parameters.pop(0)
            by_name.setdefault(each.name, []).append(overload | {"args": parameters})
    declared = [{"name": name, "overloads": overloads} for name, overloads in by_name.items()]
    excluded = {"exclude_functions": [{"name": name} for name in _REDECLARED]}
    return f"stdlib: {json.dumps(excluded)}\nfunctions: {json.dumps(declared)}\n"


def _declared_variables(variables: Mapping[str, Type]) -> str:
    named = [{"name": name, **configured_type(each)} for name, each in variables.items()]
    return f"variables: {json.dumps(named)}\n" if named else ""


@lru_cache(maxsize=64)
def _runtime(library: Library, names: frozenset[str]) -> Any:
    """The environment that evaluates: it knows names but no types, so that those with equal names share it."""
    dyn = evaluator.module().Type.DYN
    return evaluator.new_environment(dict.fromkeys(names, dyn), _implementations(library))


@lru_cache(maxsize=8)
def _implementations(library: Library) -> list[Any]:
    """What computes, by the kinds of values that are passed; overloads of equal kinds share one entry."""
    cel = evaluator.module()
    grouped: dict[tuple[str, bool, tuple[str, ...]], list[Function]] = {}
    for each in library.functions:
        if each.compute is not None:
            for combination in kinds(each):
                name = runtime_name(each.name, each.returns.name)
                grouped.setdefault((name, each.member, combination), []).append(each)
    by_name: dict[str, list[Any]] = {}
    for (name, member, combination), candidates in grouped.items():
        returns = candidates[0].returns.name
        overload = cel.Overload(
            f"{name}({', '.join(combination)}){'.' if member else ''}",
            return_type=cel.Type(returns if returns in TIMES else "dyn"),
            parameters=[cel.Type(kind) for kind in combination],
            is_member=member,
            impl=dispatcher(candidates, library.codecs),
        )
        by_name.setdefault(name, []).append(overload)
    return [cel.FunctionDecl(name, overloads) for name, overloads in by_name.items()]
