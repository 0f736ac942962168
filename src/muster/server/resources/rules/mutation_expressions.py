"""Mutations of a MutatingAdmissionPolicy: expressions that give an apply configuration or JSON patches."""

from __future__ import annotations

from muster.api.errors import FieldError
from muster.cel import STRING, CompileError, Environment, Program
from muster.cel.environment import Library
from muster.cel.evaluator import missing
from muster.cel.functions.function import Function
from muster.cel.object_building import compile_building
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import forbidden, invalid, not_supported, required
from muster.server.resources.rules.policy_expressions import UNDECIDED, environment

APPLY, JSON_PATCH = "ApplyConfiguration", "JSONPatch"
_FIELDS = {APPLY: "applyConfiguration", JSON_PATCH: "jsonPatch"}
_RESULTS = {APPLY: "Object", JSON_PATCH: "list(JSONPatch)"}


def _escape_key(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


ESCAPE_KEY = Function("jsonpatch.escapeKey", (STRING,), STRING, _escape_key, member=False)


def expression_of(mutation: Obj) -> str:
    return (mutation.get(_FIELDS.get(mutation.get("patchType", ""), "")) or {}).get("expression", "")


def compiled(mutation: Obj, where: Environment) -> Program | CompileError:
    """The program of a mutation."""
    return compile_building(expression_of(mutation), where, ("Object", "JSONPatch"))


def mutation_library(library: Library) -> Library:
    """The same functions, and those that only mutations have."""
    return library.extended((ESCAPE_KEY,))


_LIBRARY = mutation_library(UNDECIDED)


def validate_mutation(path: str, mutation: Obj, variables: tuple[str, ...], *, params: bool) -> list[FieldError]:
    kind = mutation.get("patchType", "")
    if kind not in _FIELDS:
        return [required(f"{path}.patchType")] if not kind else [not_supported(f"{path}.patchType", kind, _FIELDS)]
    field = _FIELDS[kind]
    found: list[FieldError] = []
    if mutation.get(field) is None:
        found.append(required(f"{path}.{field}", f"must be specified when patchType is {kind}"))
    else:
        found += _validate_expression(f"{path}.{field}.expression", mutation, variables, params)
    for other in _FIELDS.values():
        if other != field and mutation.get(other) is not None:
            words = f"must not be specified when patchType is {kind}"
            found.append(invalid(f"{path}.{other}", f"{{{other}}}", words))
    return found


def _validate_expression(path: str, mutation: Obj, variables: tuple[str, ...], params: bool) -> list[FieldError]:
    text = expression_of(mutation)
    if not text.strip():
        return [required(path)]
    if why := missing():
        return [forbidden(path, why)]
    program = compiled(mutation, environment(_LIBRARY, params=params, variables=variables))
    if isinstance(program, CompileError):
        return [invalid(path, text, f"compilation failed: {program.message}")]
    wanted = _RESULTS[mutation["patchType"]]
    if program.result not in (wanted, "dyn"):
        return [invalid(path, text, f"must evaluate to {wanted} but got {program.result}")]
    return []
