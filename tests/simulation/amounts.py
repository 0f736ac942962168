"""Amounts of cpu, read without the product's code."""

from __future__ import annotations

from typing import Any


def milli(text: Any) -> int:
    """Thousandths of a cpu."""
    text = str(text or 0)
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def cpu_of(amounts: dict[str, Any]) -> int:
    return milli(amounts.get("cpu"))


def cpu_of_pod(pod: dict[str, Any]) -> int:
    return sum(cpu_of((each.get("resources") or {}).get("requests") or {}) for each in pod["spec"]["containers"])
