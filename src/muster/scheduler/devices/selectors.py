"""Device selectors: CEL expressions over one device, each evaluated once for all devices that look the same to it."""

from __future__ import annotations

from typing import Any

from muster.cel.device_selectors import amount, compile_selector, selects, version
from muster.cel.errors import CelMissingError, CompileError, EvaluationError
from muster.cel.program import Program
from muster.scheduler.devices.allocator import SelectorError
from muster.scheduler.devices.claim_request import Selector
from muster.scheduler.devices.device import Attribute, Device

_MOST_ANSWERS = 200_000


class DeviceSelectors:
    """Answers of selectors, kept by expression and by what a selector can see of a device."""

    def __init__(self) -> None:
        self._programs: dict[str, Program | str] = {}
        self._answers: dict[tuple[str, int], bool | str] = {}

    def __call__(self, selector: Selector, device: Device) -> bool:
        """Whether a device matches. Raises SelectorError."""
        key = (selector.expression, device.content)
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[key] = self._evaluate(selector, device)
        if isinstance(found, str):
            raise SelectorError(f"{selector} on device {'/'.join(device.id)}: {found}")
        return found

    def _evaluate(self, selector: Selector, device: Device) -> bool | str:
        program = self._program(selector.expression)
        if isinstance(program, str):
            return program
        attributes: dict[str, dict[str, Any]] = {}
        capacity: dict[str, dict[str, Any]] = {}
        try:
            for name, attribute in device.attributes.items():
                domain, _, key = name.rpartition("/")
                attributes.setdefault(domain, {})[key] = _value(attribute)
            for name, found in device.capacity.items():
                domain, _, key = name.rpartition("/")
                capacity.setdefault(domain, {})[key] = amount(found.amount)
            return selects(program, device.id.driver, device.shareable, attributes, capacity)
        except (EvaluationError, ValueError) as error:
            return f"CEL runtime error: {error}"

    def _program(self, text: str) -> Program | str:
        found = self._programs.get(text)
        if found is None:
            try:
                compiled = compile_selector(text)
            except CelMissingError as error:
                return str(error)
            found = f"CEL compile error: {compiled.message}" if isinstance(compiled, CompileError) else compiled
            self._programs[text] = found
        return found


def _value(attribute: Attribute) -> Any:
    return version(str(attribute.value)) if attribute.type == "version" else attribute.value
