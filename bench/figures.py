"""The common form of the benchmarks: a figure with its bar, and one table of all of them.

A page (`bench/NAME.py`) offers `figures()`, which yields a `Figure` for each row as soon as it is measured. A page may
also offer `guarded()`, the small works of it that `bench.guard` watches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass
class Figure:
    """One measured number and its bar: at least `floor`, at most `ceiling`; `note` says what a number cannot."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    ceiling: float | None = None
    note: str = ""

    @classmethod
    def not_measured(
        cls, name: str, unit: str, why: str, *, floor: float | None = None, ceiling: float | None = None
    ) -> Self:
        """A row for a bar whose figure cannot be had here."""
        return cls(name, math.nan, unit, floor, ceiling, why)

    @property
    def met(self) -> bool:
        return (self.floor is None or self.value >= self.floor) and (self.ceiling is None or self.value <= self.ceiling)

    @property
    def bar(self) -> str:
        """What the figure is held against, in words; empty without a bar."""
        if self.floor is not None:
            return f"at least {_number(self.floor)}"
        return f"at most {_number(self.ceiling)}" if self.ceiling is not None else ""

    @property
    def reached(self) -> str:
        if not self.bar:
            return ""
        if math.isnan(self.value):
            return "unknown"
        return "yes" if self.met else "NO"

    def __str__(self) -> str:
        verdict = f"  ({self.bar}: {self.reached})" if self.bar else ""
        note = f"  {self.note}" if self.note else ""
        return f"{self.name:<58} {_number(self.value):>12} {self.unit}{verdict}{note}"


def without_bar(figures: dict[str, float], unit: str = "") -> Iterable[Figure]:
    """Figures that are only for reading."""
    return (Figure(name, value, unit) for name, value in figures.items())


def table(rows: Iterable[tuple[str, Figure]]) -> str:
    """All figures that have a bar, with the page that measured them."""
    lines = ["| page | what | figure | bar | reached |", "|---|---|---:|---:|---|"]
    for page, figure in rows:
        if figure.bar:
            unit = "" if math.isnan(figure.value) else figure.unit
            value = f"{_number(figure.value)} {unit}".strip()
            what = f"{figure.name}; {figure.note}" if figure.note else figure.name
            lines.append(f"| {page} | {what} | {value} | {figure.bar} | {figure.reached} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    """With as many digits as tell something."""
    if math.isnan(value):
        return "not measured"
    if abs(value) == float("inf"):
        return "never"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
