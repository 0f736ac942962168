"""ValidatingAdmissionPolicy: expressions that must be true of a write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muster.cel import STRING, CompileError, Program, Values, compile
from muster.cel.environment import Library
from muster.server.admission.dynamic.attributes import Attributes
from muster.server.admission.dynamic.policies import Binding, Case, Kinds, Policy, PolicyError, Refused, cases, refusal
from muster.server.resources.kind import Obj

_KIND = "ValidatingAdmissionPolicy"
_LONGEST_MESSAGE = 5 * 1024


class _Validation(NamedTuple):
    program: Program | CompileError
    text: str
    message: str
    message_program: Program | CompileError | None
    reason: str


class ValidatingPolicy(Policy):
    """One policy."""

    def __init__(self, name: str, spec: Obj, library: Library) -> None:
        super().__init__(name, spec, library)
        self._validations = [self._compiled(each) for each in spec.get("validations") or ()]

    def _compiled(self, given: Obj) -> _Validation:
        text: str = given["expression"]
        written: str = given.get("messageExpression") or ""
        message = compile(written, self.environment, returns=STRING) if written else None
        program = compile(text, self.environment)
        return _Validation(program, text, given.get("message") or "", message, given.get("reason") or "Invalid")

    def validate(self, bindings: Sequence[Binding], attributes: Attributes, kinds: Kinds) -> None:
        """Raises ApiError where a binding denies what fails; others warn."""
        try:
            for case in cases(self, bindings, attributes, kinds):
                self._judge(case, attributes)
        except Refused as refused:
            raise refusal(_KIND, self, attributes, refused) from None

    def _judge(self, case: Case, attributes: Attributes) -> None:
        for validation in self._validations:
            try:
                if self.evaluate(validation.program, case.values) is True:
                    continue
                why, reason = self._why(validation, case.values), validation.reason
            except PolicyError as error:
                if not self.fails:
                    continue
                why, reason = str(error), "Invalid"
            if "Warn" in case.binding.actions:
                by = f"Validation failed for {_KIND} '{self.name}' with binding '{case.binding.name}'"
                attributes.write.warnings.append(f"{by}: {why}")
            if "Deny" in case.binding.actions:
                raise Refused(case.binding, why, reason)

    def _why(self, validation: _Validation, values: Values) -> str:
        """What is said of a failed validation: its own words, where they can be found."""
        if validation.message_program is not None:
            try:
                said = self.evaluate(validation.message_program, values)
                if isinstance(said, str) and said.strip() and "\n" not in said and len(said) <= _LONGEST_MESSAGE:
                    return said.strip()
            except PolicyError:
                pass
        return validation.message or f"failed expression: {validation.text.strip()}"
