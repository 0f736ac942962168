"""The rules of a schema (`x-kubernetes-validations`): compiled with the definition, evaluated on each write.

A rule that names `oldSelf` is about a change: it is evaluated where the value that it replaces is known, by name or by
the keys of its list. A value that did not change is not judged again by the other rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from muster import cel
from muster.api.errors import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    OMITTED,
    REQUIRED,
    TOO_LONG,
    TYPE_INVALID,
    FieldError,
)
from muster.cel.types import LARGEST_REQUEST
from muster.server.custom_resources.cel_types import declared_type
from muster.server.custom_resources.structural import Structural

COST_LIMIT = 10_000_000
WHOLE_COST_LIMIT = 100_000_000
MOST_EVALUATIONS = 20_000  # of all rules on one object

_MOST_NAMED = 4  # expressions that are said to have cost most
_BLOCKING = (NOT_SUPPORTED, REQUIRED, TOO_LONG, DUPLICATE, TYPE_INVALID)
_REASONS = (DUPLICATE, FORBIDDEN, INVALID, REQUIRED)
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation"
)
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_ABSENT = object()


class Rule:
    """One compiled rule."""

    def __init__(self, source: dict[str, Any], environment: cel.Environment) -> None:
        self.source = source
        self.text: str = source["rule"].strip()
        self.optional_old = bool(source.get("optionalOldSelf"))
        self.program = cel.compile(self.text, environment, returns=cel.BOOL)
        words = (source.get("messageExpression") or "").strip()
        self.message = cel.compile(words, environment, returns=cel.STRING) if words else None

    @property
    def uses_old(self) -> bool:
        return isinstance(self.program, cel.Program) and "oldSelf" in self.program.names

    @property
    def said(self) -> str:
        """How error texts call the rule."""
        return (self.source.get("message") or "").strip() or self.text


class RuleNode:
    """The rules of one schema node, and of what lies below it. Nodes without any rule below are left out."""

    def __init__(self, schema: Structural, known: cel.Type | None, name: str) -> None:
        self.schema = schema
        self._known = known
        self._rules: list[Rule] = []
        self._environments: dict[bool, cel.Environment] = {}  # with and without an optional oldSelf
        self.given: list[dict[str, Any]] = schema.source.get("x-kubernetes-validations") or [] if known else []
        self.properties = {
            raw: node for raw, each in schema.properties.items() if (node := _node(each, f"{name}_{raw}")) is not None
        }
        self.items = _node(schema.items, f"{name}_item") if schema.items is not None else None
        self.additional = _node(schema.additional, f"{name}_value") if schema.additional is not None else None

    @property
    def rules(self) -> list[Rule]:
        """Compiled when they are first needed. Raises CelMissingError."""
        while not self.compile_next():
            pass
        return self._rules

    def compile_next(self) -> bool:
        """Compile one more rule; whether all are."""
        if len(self._rules) < len(self.given):
            given = self.given[len(self._rules)]
            self._rules.append(Rule(given, self._environment(bool(given.get("optionalOldSelf")))))
        return len(self._rules) == len(self.given)

    def _environment(self, optional_old: bool) -> cel.Environment:
        made = self._environments.get(optional_old)
        if made is None:
            old = cel.OptionalOf(element=self.known) if optional_old else self.known
            made = self._environments[optional_old] = cel.Environment({"self": self.known, "oldSelf": old})
        return made

    @property
    def known(self) -> cel.Type:
        assert self._known is not None
        return self._known

    def any(self) -> bool:
        return bool(self.given or self.properties or self.items or self.additional)


def _node(schema: Structural, name: str, resource: bool = False) -> RuleNode | None:
    safe = "".join(letter if letter.isalnum() else "_" for letter in name)
    node = RuleNode(schema, declared_type(schema, safe, resource) if _has_rules(schema) else None, safe)
    return node if node.any() else None


def _has_rules(schema: Structural) -> bool:
    return bool(schema.source.get("x-kubernetes-validations"))


def rules_of(schema: Structural) -> RuleNode | None:
    """The rules of a whole custom resource; None where it has none.

    Compiling is most of the work that a definition causes, so that equal schemas share it: the check of the definition
    and the validation of its objects, and all states of a definition whose schema stays.
    """
    return _rules_of(msgspec.json.encode(schema.source))


@lru_cache(maxsize=256)
def _rules_of(source: bytes) -> RuleNode | None:
    return _node(Structural(msgspec.json.decode(source)), "Self", resource=True)


async def compile_rules(schema: Structural) -> None:
    """Compile all rules of a schema, and let others have their turn between them."""
    node = rules_of(schema)
    try:
        for each in _walk(node) if node is not None else ():
            for _ in each.given:
                each.compile_next()
                await asyncio.sleep(0)
    except cel.CelMissingError:
        return  # said where the definition is validated


def _walk(node: RuleNode) -> Iterator[RuleNode]:
    yield node
    for each in (*node.properties.values(), node.items, node.additional):
        if each is not None:
            yield from _walk(each)


# On the definition


class _Costs:
    """What the expressions of one schema cost, each and together."""

    def __init__(self) -> None:
        self.each: list[tuple[int, str]] = []

    @property
    def total(self) -> int:
        return sum(cost for cost, _ in self.each)

    def most_expensive(self) -> list[str]:
        return [path for cost, path in sorted(self.each, reverse=True)[:_MOST_NAMED] if cost > 0]


def validate_rules(schema: Structural, path: str) -> Iterator[FieldError]:
    """The errors of all rules of a schema that is otherwise well formed."""
    node = rules_of(schema)
    if node is None:
        return
    costs = _Costs()
    try:
        yield from _compiled(node, path, 1, "", costs)
    except cel.CelMissingError as missing:
        yield FieldError(INVALID, f"{path}.x-kubernetes-validations", OMITTED, str(missing))
    if costs.total > WHOLE_COST_LIMIT:
        for expensive in costs.most_expensive():
            why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield FieldError(FORBIDDEN, expensive, detail=why)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield FieldError(FORBIDDEN, path, detail=_too_expensive(what, costs.total, WHOLE_COST_LIMIT))


def _compiled(node: RuleNode, path: str, times: int | None, unrelated: str, costs: _Costs) -> Iterator[FieldError]:
    """`times`: how many such values an object can have, None without a limit; `unrelated`: where old values end."""
    for index, given in enumerate(node.given):
        yield from _form(given, f"{path}.x-kubernetes-validations[{index}]")
    if node.given and all(each["rule"].strip() for each in node.given):
        for index, rule in enumerate(node.rules):
            yield from _rule(node, rule, f"{path}.x-kubernetes-validations[{index}]", times, unrelated, costs)
    for name, each in node.properties.items():
        below = unrelated or (path if node.schema.map_type == "atomic" else "")
        yield from _compiled(each, f"{path}.properties[{name}]", times, below, costs)
    source = node.schema.source
    if node.items is not None:
        below = unrelated or ("" if node.schema.list_type == "map" else path)
        yield from _compiled(node.items, f"{path}.items", _times(times, source.get("maxItems")), below, costs)
    if node.additional is not None:
        more = _times(times, source.get("maxProperties"))
        yield from _compiled(node.additional, f"{path}.additionalProperties", more, unrelated, costs)


def _times(so_far: int | None, most: int | None) -> int | None:
    return None if so_far is None or most is None else so_far * most


def _form(rule: dict[str, Any], path: str) -> Iterator[FieldError]:
    message, text = rule.get("message") or "", rule["rule"].strip()
    if not text:
        yield FieldError(REQUIRED, f"{path}.rule", detail="rule is not specified")
    elif message and not message.strip():
        yield FieldError(INVALID, f"{path}.message", message, "must be non-empty if specified")
    elif _has_breaks(message.strip()):
        yield FieldError(INVALID, f"{path}.message", message, "must not contain line breaks")
    elif _has_breaks(text) and not message.strip():
        why = "message must be specified if rule contains line breaks"
        yield FieldError(REQUIRED, f"{path}.message", detail=why)
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        listed = ", ".join(f'"{each}"' for each in sorted(_REASONS))
        yield FieldError(NOT_SUPPORTED, f"{path}.reason", reason, f"supported values: {listed}")


def _has_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _rule(
    node: RuleNode, rule: Rule, path: str, times: int | None, unrelated: str, costs: _Costs
) -> Iterator[FieldError]:
    field_path = rule.source.get("fieldPath") or ""
    if field_path and _field_name(node.schema, field_path) is None:
        yield FieldError(INVALID, f"{path}.fieldPath", field_path, "must be a valid path")
    count = times if times is not None else max(1, LARGEST_REQUEST // node.known.min_size)
    for name, program in (("rule", rule.program), ("messageExpression", rule.message)):
        if isinstance(program, cel.CompileError):
            yield FieldError(INVALID, f"{path}.{name}", rule.source, _compile_words(name, program.message))
        elif program is not None:
            cost = program.cost() * (count if name == "rule" else 1)
            costs.each.append((cost, f"{path}.{name}"))
            if cost > COST_LIMIT:
                why = _too_expensive(f"estimated {name} cost", cost, COST_LIMIT)
                yield FieldError(FORBIDDEN, f"{path}.{name}", detail=why)
    if rule.uses_old and unrelated:
        why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {unrelated}"
        yield FieldError(INVALID, f"{path}.rule", rule.source["rule"], why)
    elif not rule.uses_old and "optionalOldSelf" in rule.source and isinstance(rule.program, cel.Program):
        why = "may not be set if oldSelf is not used in rule"
        yield FieldError(INVALID, f"{path}.optionalOldSelf", rule.source["optionalOldSelf"], why)


def _compile_words(name: str, complaint: str) -> str:
    if complaint.startswith("must evaluate to bool"):
        return "cel expression must evaluate to a bool"
    if complaint.startswith("must evaluate to string"):
        return "messageExpression must evaluate to a string"
    return f"{'messageExpression ' if name != 'rule' else ''}compilation failed: {complaint}"


def _too_expensive(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, and"
        " maxLength where arrays, maps, and strings are declared)"
    )


def _field_name(schema: Structural, path: str) -> str | None:
    """A rule's fieldPath below the value it is about: `.a.b` or `.a['b']`; None where there is no such field."""
    current: Structural | None = schema
    words: list[str] = []
    for part in path.replace("['", ".'").replace("']", "'").split(".")[1:]:
        name = part.strip("'")
        if current is None or not name:
            return None
        words.append(f".{name}" if name in current.properties else f"[{name}]")
        current = current.field(name)
        if current is None:
            return None
    return "".join(words).removeprefix(".") if words and path[0] in ".[" else None


# On objects


class _Budget:
    def __init__(self) -> None:
        self.left = MOST_EVALUATIONS


def validate(node: RuleNode, new: Any, old: Any, found: list[FieldError]) -> list[FieldError]:
    """The errors of all rules on an object; `found` are those of its schema, of which some leave no sense in rules."""
    if any(error.type in _BLOCKING for error in found):
        return [FieldError(INVALID, "<nil>", None, _NOT_CHECKED)]
    try:
        return list(_checked(node, new, old if old is not None else _ABSENT, "", False, _Budget()))
    except cel.CelMissingError as missing:
        return [FieldError(INVALID, "<nil>", OMITTED, str(missing))]


def _checked(node: RuleNode, new: Any, old: Any, path: str, same_above: bool, budget: _Budget) -> Iterator[FieldError]:
    """`same_above`: an old value cannot be found here, and what holds this one did not change."""
    if new is None or budget.left < 0:
        return
    unchanged = same_above if old is _ABSENT else old == new
    if node.given:
        yield from _evaluated(node, new, old, path, unchanged, budget)
    if type(new) is dict:
        before: dict[str, Any] = old if type(old) is dict else {}
        for name, value in new.items():
            inner = node.properties.get(name)
            where = f"{path}.{name}" if path else name
            if inner is None and name not in node.schema.properties and node.additional is not None:
                inner, where = node.additional, f"{path}[{name}]"
            if inner is not None:
                yield from _checked(inner, value, before.get(name, _ABSENT), where, False, budget)
    elif type(new) is list and node.items is not None:
        known = _by_key(old, node.schema)
        for index, value in enumerate(new):
            former = known.get(_key(value, node.schema.list_keys), _ABSENT) if known else _ABSENT
            yield from _checked(node.items, value, former, f"{path}[{index}]", not known and unchanged, budget)


def _by_key(old: Any, schema: Structural) -> dict[Any, Any]:
    if type(old) is not list or schema.list_type != "map":
        return {}
    return {_key(each, schema.list_keys): each for each in old}


def _key(item: Any, keys: tuple[str, ...]) -> Any:
    return tuple(repr(item.get(key)) for key in keys) if type(item) is dict else None


def _evaluated(node: RuleNode, new: Any, old: Any, path: str, unchanged: bool, budget: _Budget) -> Iterator[FieldError]:
    values, optional = cel.Values({"self": new, "oldSelf": old}), cel.Values({"self": new, "oldSelf": []})
    if old is not _ABSENT:
        optional.set("oldSelf", [old])
    for rule in node.rules:
        budget.left -= 1
        if budget.left < 0:
            yield FieldError(INVALID, path or "<nil>", node.schema.type, _OUT_OF_BUDGET)
            return
        if isinstance(rule.program, cel.CompileError):
            why = f"rule compile error: {rule.program.message}"
            yield FieldError(INVALID, path or "<nil>", node.schema.type, why)
            continue
        if rule.uses_old and old is _ABSENT and not rule.optional_old:
            continue
        if unchanged and not rule.uses_old:
            continue
        yield from _judged(node, rule, optional if rule.optional_old else values, new, path)


def _judged(node: RuleNode, rule: Rule, values: cel.Values, new: Any, path: str) -> Iterator[FieldError]:
    assert isinstance(rule.program, cel.Program)
    where = path or "<nil>"
    try:
        holds: Any = rule.program.evaluate(values)
    except cel.EvaluationError as error:
        yield FieldError(INVALID, where, node.schema.type, _evaluation_words(str(error), rule))
        return
    if holds is True:
        return
    if field_path := rule.source.get("fieldPath"):
        below = _field_name(node.schema, field_path) or ""
        where = f"{path}.{below}" if path else below
    value = OMITTED if node.schema.type in ("object", "array") else new
    yield FieldError(rule.source.get("reason") or INVALID, where, value, _message(rule, values))


def _message(rule: Rule, values: cel.Values) -> str:
    """What a rule says when it is broken; an expression that gives nothing useful gives way to the fixed text."""
    if isinstance(rule.message, cel.Program):
        try:
            words: Any = rule.message.evaluate(values)
        except cel.EvaluationError:
            words = ""
        if isinstance(words, str) and words.strip() and not _has_breaks(words.strip()):
            return words.strip()
    return (rule.source.get("message") or "").strip() or f"failed rule: {rule.text}"


def _evaluation_words(error: str, rule: Rule) -> str:
    if error.startswith("no such overload"):
        words = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {words}: {rule.said}"
    if error.startswith("operation cancelled"):
        words = "no further validation rules will be run due to call cost exceeds limit for rule"
        return f"'{error}': {words}: {rule.said}"
    return f"{error} evaluating rule: {rule.said}"
