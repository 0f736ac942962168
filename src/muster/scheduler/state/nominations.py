"""Nominated seats."""

from __future__ import annotations

from dataclasses import dataclass

from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey


@dataclass(frozen=True, slots=True)
class Nomination:
    """A seat kept free for a pod whose victims are still leaving."""

    uid: str
    shape: Shape
    node: str
    priority: int
    entity: EntityKey
