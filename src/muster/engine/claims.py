"""Binds that wait for volumes: a pod is bound when its claims are, and a gang only when all of them are.

A claim with a chosen node is provisioned by someone else. When its provisioner gives the choice back, when it
takes too long, or when a pod or node of the plan is gone meanwhile, all binds that waited together fail and the
brain decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from muster.api.types import PersistentVolumeClaim
from muster.engine.facts import Look
from muster.engine.statuses import SELECTED_NODE
from muster.scheduler.interface.decisions import Bind, PromiseVolume, SelectVolumeNode
from muster.scheduler.interface.events import BindFailed, Event

KIND = "PersistentVolumeClaim"


@dataclass(slots=True)
class Waiting:
    """Some binds and the claims that must be bound first."""

    binds: list[Bind]
    claims: dict[tuple[str, str], str]  # (namespace, name) -> node chosen for it, empty if it gets a known volume
    deadline: float
    chosen: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])  # seen with our choice on them


class ClaimGate:
    """Holds binds back until their claims are bound."""

    def __init__(
        self, look: Look, release: Callable[[Bind], None], report: Callable[[Event], None], timeout: float = 600.0
    ) -> None:
        self._look = look
        self._release = release
        self._report = report
        self._timeout = timeout
        self._waiting: list[Waiting] = []

    @property
    def busy(self) -> bool:
        """Whether any bind waits."""
        return bool(self._waiting)

    def hold(self, binds: Iterable[Bind], claims: Iterable[SelectVolumeNode | PromiseVolume], now: float) -> None:
        wanted = {
            (each.claim.namespace, each.claim.name): each.node if isinstance(each, SelectVolumeNode) else ""
            for each in claims
        }
        waiting = Waiting(list(binds), wanted, now + self._timeout)
        self._waiting.append(waiting)
        self.review(now)

    def review(self, now: float) -> None:
        """Look at every claim again: after a change of one, and when time has passed."""
        before, self._waiting = self._waiting, []
        for waiting in before:
            fault = self._judge(waiting, now)
            if fault is None:
                self._waiting.append(waiting)
                continue
            for bind in waiting.binds:
                if fault:
                    self._report(BindFailed(bind.pod.uid, bind.node, fault))
                else:
                    self._release(bind)

    def next_due(self) -> float | None:
        return min((waiting.deadline for waiting in self._waiting), default=None)

    def _judge(self, waiting: Waiting, now: float) -> str | None:
        """ "" when all claims are bound, a fault, or None to wait on."""
        for bind in waiting.binds:
            pod = self._look("Pod", bind.pod.namespace, bind.pod.name)
            if pod is None or pod.metadata.uid != bind.pod.uid or pod.metadata.deletion_timestamp is not None:
                return f"the pod {bind.pod.namespace}/{bind.pod.name} is gone"
            if self._look("Node", "", bind.node) is None:
                return f"the node {bind.node} is gone"
        open_claims = [key for key in waiting.claims if not self._bound(key)]
        if not open_claims:
            return ""
        for key in open_claims:
            claim = self._look(KIND, *key)
            name = f"{key[0]}/{key[1]}"
            if claim is None:
                return f"the claim {name} is gone"
            if not waiting.claims[key]:
                continue
            chosen = (claim.metadata.annotations or {}).get(SELECTED_NODE)
            if chosen == waiting.claims[key]:
                waiting.chosen.add(key)
            elif key in waiting.chosen:
                return f"no volume could be made for the claim {name} on node {waiting.claims[key]}"
        if now >= waiting.deadline:
            return f"the claim {open_claims[0][0]}/{open_claims[0][1]} was not bound in time"
        return None

    def _bound(self, key: tuple[str, str]) -> bool:
        claim: PersistentVolumeClaim | None = self._look(KIND, *key)
        return claim is not None and claim.status.phase == "Bound" and bool(claim.spec.volume_name)
