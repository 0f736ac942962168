"""Holds binds until their claims are bound: a pod waits for its own claims, a gang for those of all its members.

A claim with a selected node is provisioned by somebody else. When its provisioner removes the annotation, when it takes
too long, or when a pod or node of the plan is gone meanwhile, all binds that waited together fail and the scheduler
decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from muster.api.types import PersistentVolumeClaim
from muster.engine.api_calls.patches import SELECTED_NODE
from muster.engine.latest_objects import Look
from muster.scheduler.interface.decisions import Bind, PromiseVolume, SelectVolumeNode
from muster.scheduler.interface.events import LOST_RACE, REFUSED, BindFailed, Event

KIND = "PersistentVolumeClaim"


@dataclass(slots=True)
class HeldBinds:
    """Binds that are released or fail together, and the claims that must be bound first."""

    binds: list[Bind]
    claims: dict[tuple[str, str], str]  # (namespace, name) -> node selected for it, empty if it gets a known volume
    deadline: float
    selected: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])  # seen with our node on them


class VolumeBindGate:
    """Holds binds back until their claims are bound."""

    def __init__(
        self, look: Look, release: Callable[[Bind], None], report: Callable[[Event], None], timeout: float = 600.0
    ) -> None:
        self._look = look
        self._release = release
        self._report = report
        self._timeout = timeout
        self._held: list[HeldBinds] = []

    @property
    def busy(self) -> bool:
        """Whether any bind is held."""
        return bool(self._held)

    def hold(self, binds: Iterable[Bind], claims: Iterable[SelectVolumeNode | PromiseVolume], now: float) -> None:
        wanted = {
            (each.claim.namespace, each.claim.name): each.node if isinstance(each, SelectVolumeNode) else ""
            for each in claims
        }
        held = HeldBinds(list(binds), wanted, now + self._timeout)
        self._held.append(held)
        self.review(now)

    def review(self, now: float) -> None:
        """Look at every claim again: after a change of one, and when time has passed."""
        before, self._held = self._held, []
        for held in before:
            verdict = self._gone(held) or self._check(held, now)
            if verdict is None:
                self._held.append(held)
                continue
            for bind in held.binds:
                if verdict[0]:
                    self._report(BindFailed(bind.pod.uid, bind.node, *verdict))
                else:
                    self._release(bind)

    def next_due(self) -> float | None:
        return min((held.deadline for held in self._held), default=None)

    def _gone(self, held: HeldBinds) -> tuple[str, str] | None:
        """Which pod or node of the plan is gone, and that this is a lost race."""
        for bind in held.binds:
            pod = self._look("Pod", bind.pod.namespace, bind.pod.name)
            if pod is None or pod.metadata.uid != bind.pod.uid or pod.metadata.deletion_timestamp is not None:
                return f"the pod {bind.pod.namespace}/{bind.pod.name} is gone", LOST_RACE
            if self._look("Node", "", bind.node) is None:
                return f"the node {bind.node} is gone", LOST_RACE
        return None

    def _check(self, held: HeldBinds, now: float) -> tuple[str, str] | None:
        """An empty text when all claims are bound, why they will not be, or None to wait on."""
        open_claims = [key for key in held.claims if not self._bound(key)]
        if not open_claims:
            return "", ""
        for key in open_claims:
            claim: PersistentVolumeClaim | None = self._look(KIND, *key)
            name = f"{key[0]}/{key[1]}"
            if claim is None:
                return f"the claim {name} is gone", REFUSED
            if not held.claims[key]:
                continue
            selected = (claim.metadata.annotations or {}).get(SELECTED_NODE)
            if selected == held.claims[key]:
                held.selected.add(key)
            elif key in held.selected:
                return f"no volume could be made for the claim {name} on node {held.claims[key]}", REFUSED
        if now >= held.deadline:
            return f"the claim {open_claims[0][0]}/{open_claims[0][1]} was not bound in time", REFUSED
        return None

    def _bound(self, key: tuple[str, str]) -> bool:
        claim: PersistentVolumeClaim | None = self._look(KIND, *key)
        return claim is not None and claim.status.phase == "Bound" and bool(claim.spec.volume_name)
