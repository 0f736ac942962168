"""DaemonSets: one pod on every node that the template allows, also on nodes that come later.

A new template replaces pods node by node: at most `maxUnavailable` nodes are without an available pod, or, with
`maxSurge`, the new pod starts beside the old one, which goes when the new one is available.
"""

from __future__ import annotations

from muster.api.resources import DAEMON_SETS, NODES
from muster.controllers.daemon_nodes import NodeJudge, daemon_spec, node_of, pinned
from muster.controllers.objects import PodView, RevisionView, UnstructuredObject, available_in
from muster.controllers.pod_control import pod_from
from muster.controllers.pod_owner import RevisionedPodOwner
from muster.controllers.revisions import HASH_LABEL, revision_hash
from muster.controllers.rolling_limits import rolling_limit
from muster.controllers.status import JSON, write_status

_FIRST_BACKOFF = 1.0  # seconds between two pods on a node where they fail
_LONGEST_BACKOFF = 900.0


class DaemonSetController(RevisionedPodOwner):
    name = "daemonset-controller"
    workers = 2
    resource = DAEMON_SETS

    def setup(self) -> None:
        super().setup()
        self.nodes = self.watch(NODES)
        self.failures: dict[tuple[str, str], tuple[int, float]] = {}  # (set, node) -> how often, when last
        self.sets.on_change(self._set_changed)
        self.nodes.on_change(self._node_changed)

    def _set_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        if old is not None and new is None:
            self.failures = {key: value for key, value in self.failures.items() if key[0] != old.metadata.uid}

    def _node_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        if old is not None and new is not None and _placement(old) == _placement(new):
            return
        for each in self.sets.objects.values():
            self.queue.add((each.metadata.namespace, each.metadata.name))

    async def roll_out(
        self, found: UnstructuredObject, known: list[RevisionView], update: RevisionView
    ) -> float | None:
        return await _Reconciliation(self, found, update).run(known)


class _Reconciliation:
    """One reconciliation of one DaemonSet."""

    def __init__(self, controller: DaemonSetController, found: UnstructuredObject, update: RevisionView) -> None:
        self.controller = controller
        self.control = controller.control
        self.set = found
        self.hash = revision_hash(update)
        self.update = update
        self.now = controller.clock.now()
        self.settle = float(found.spec.get("minReadySeconds") or 0)
        template: JSON = found.spec.get("template") or {}
        self.template = {**template, "spec": daemon_spec(template.get("spec") or {})}
        nodes: list[UnstructuredObject] = list(controller.nodes.objects.values())
        judge = NodeJudge(self.template["spec"]).judge
        self.eligible = {node.metadata.name: judge(node) for node in nodes}
        self.wanted = sum(1 for each in self.eligible.values() if each.run)
        strategy: JSON = found.spec.get("updateStrategy") or {}
        self.on_delete = strategy.get("type") == "OnDelete"
        rolling: JSON = strategy.get("rollingUpdate") or {}
        self.surge = rolling_limit(rolling.get("maxSurge", 0), self.wanted, round_up=True)
        unavailable = rolling_limit(rolling.get("maxUnavailable", 1), self.wanted, round_up=True)
        self.unavailable = 1 if unavailable == 0 and self.surge == 0 else unavailable
        self.again: float | None = None
        self._sort_pods()

    def _sort_pods(self) -> None:
        """The pods of the set by node, oldest first; pods that are on their way out are kept apart."""
        self.pods: dict[str, list[PodView]] = {}
        self.leaving: dict[str, list[PodView]] = {}
        owned = self.control.pods_of(self.set.metadata.uid)
        for pod in sorted(owned, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name)):
            where = self.leaving if self.control.going(pod) else self.pods
            where.setdefault(node_of(pod), []).append(pod)

    async def run(self, known: list[RevisionView]) -> float | None:
        create, delete = await self._balance()
        await self.control.delete(delete, self.set.metadata)
        await self.control.create(self.set.metadata, [self._pod(node) for node in create])
        self._sort_pods()
        if not self.on_delete:
            await self._roll()
            self._sort_pods()
        await write_status(self.controller.client, DAEMON_SETS, self.set, self._status())
        hashes = {_hash_of(pod) for pods in self.pods.values() for pod in pods} | {self.hash}
        live = {each.metadata.name for each in known if revision_hash(each) in hashes} | {self.update.metadata.name}
        await self.controller.revisions.prune(self.set, known, live)
        return self.again

    def _pod(self, node: str) -> JSON:
        pod = pod_from(self.template, DAEMON_SETS, self.set.metadata, f"{self.set.metadata.name}-")
        pod["metadata"]["labels"][HASH_LABEL] = self.hash
        pod["spec"] = pinned(pod["spec"], node)
        return pod

    # One pod a node

    async def _balance(self) -> tuple[list[str], list[PodView]]:
        """The nodes that lack a pod, and the pods that are too many."""
        create: list[str] = []
        delete: list[PodView] = []
        for node, judged in self.eligible.items():
            pods = self.pods.get(node, [])
            if judged.run and not pods and not self.leaving.get(node):
                create.append(node)
            elif pods and not judged.stay:
                delete += pods
            elif pods:
                ended = [pod for pod in pods if pod.finished]
                delete += await self._ended(node, ended)
                delete += self._surplus([pod for pod in pods if not pod.finished])
        for node, pods in self.pods.items():
            if node not in self.eligible:
                delete += [pod for pod in pods if not pod.finished]
        return create, delete

    async def _ended(self, node: str, pods: list[PodView]) -> list[PodView]:
        """Pods that ended and may be deleted now, with a growing pause where they fail again and again."""
        if not pods:
            return []
        key = (self.set.metadata.uid, node)
        times, last = self.controller.failures.get(key, (0, 0.0))
        pause = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** (times - 1)) if times else 0.0
        left = last + pause - self.now
        if 0 < left <= pause:
            self._check_after(left)
            return []
        if last + 2 * _LONGEST_BACKOFF < self.now:
            times = 0
        self.controller.failures[key] = (min(times + 1, 32), self.now)
        for pod in pods:
            text = f"Found {_adjective(pod)} daemon pod {pod.metadata.namespace}/{pod.metadata.name} on node {node}, "
            text += "will try to kill it" if pod.status.phase == "Failed" else "will try to delete it"
            reason = "FailedDaemonPod" if pod.status.phase == "Failed" else "SucceededDaemonPod"
            await self.controller.events.warning(DAEMON_SETS, self.set.metadata, reason, text)
        return pods

    def _surplus(self, pods: list[PodView]) -> list[PodView]:
        """All but the oldest pod; while a new one starts beside an old one, all but these two."""
        if not self.surge:
            return pods[1:]
        new = [pod for pod in pods if _hash_of(pod) == self.hash]
        old = [pod for pod in pods if _hash_of(pod) != self.hash]
        return new[1:] + old[1:]

    def _check_after(self, seconds: float) -> None:
        self.again = seconds if self.again is None else min(self.again, seconds)

    # A new template

    async def _roll(self) -> None:
        if self.surge:
            await self._roll_with_surge()
        else:
            await self._roll_in_place()

    async def _roll_in_place(self) -> None:
        """Delete old pods, those that are not available first and regardless of the limit."""
        missing = 0
        working: list[PodView] = []
        idle: list[PodView] = []
        for node, judged in self.eligible.items():
            pods = [pod for pod in self.pods.get(node, ()) if not pod.finished]
            if not judged.run:
                continue
            old = [pod for pod in pods if _hash_of(pod) != self.hash]
            if not any(map(self._available, pods)):
                missing += 1
                idle += old
            else:
                working += old
        await self.control.delete([*idle, *working[: max(0, self.unavailable - missing)]], self.set.metadata)

    async def _roll_with_surge(self) -> None:
        """Start new pods beside old ones; an old one goes when the new one is available, or when it is not itself."""
        starting: list[str] = []
        done: list[PodView] = []
        surging = 0
        for node, judged in self.eligible.items():
            pods = [pod for pod in self.pods.get(node, ()) if not pod.finished]
            old = [pod for pod in pods if _hash_of(pod) != self.hash]
            new = [pod for pod in pods if _hash_of(pod) == self.hash]
            if not judged.run or not old:
                continue
            if new:
                surging += 1
                done += old if any(map(self._available, new)) else []
            elif any(map(self._available, old)):
                starting.append(node)
            else:
                done += old
        await self.control.delete(done, self.set.metadata)
        room = max(0, self.surge - surging)
        await self.control.create(self.set.metadata, [self._pod(node) for node in starting[:room]])

    # What is said

    def _available(self, pod: PodView) -> bool:
        left = available_in(pod, self.settle, self.now)
        if left:
            self._check_after(left)
        return left == 0

    def _status(self) -> JSON:
        current = scheduled_wrongly = ready = available = updated = 0
        for node, judged in self.eligible.items():
            pods = self.pods.get(node, [])
            if not judged.run:
                scheduled_wrongly += bool(pods)
                continue
            if not pods:
                continue
            current += 1
            # The pod that serves the node: of those that are available, or else ready, the newest.
            best = max(pods, key=lambda pod: (self._available(pod), pod.ready, _hash_of(pod) == self.hash))
            ready += best.ready
            available += self._available(best)
            updated += any(_hash_of(pod) == self.hash for pod in pods)
        status: JSON = {
            "desiredNumberScheduled": self.wanted,
            "currentNumberScheduled": current,
            "numberMisscheduled": scheduled_wrongly,
            "numberReady": ready,
            "observedGeneration": self.set.metadata.generation,
        }
        if "collisionCount" in self.set.status:
            status["collisionCount"] = self.set.status["collisionCount"]
        numbers = {
            "updatedNumberScheduled": updated,
            "numberAvailable": available,
            "numberUnavailable": self.wanted - available,
        }
        return status | {key: number for key, number in numbers.items() if number}


def _placement(node: UnstructuredObject) -> tuple[object, object]:
    return (node.metadata.labels, node.spec.get("taints"))


def _hash_of(pod: PodView) -> str:
    return (pod.metadata.labels or {}).get(HASH_LABEL, "")


def _adjective(pod: PodView) -> str:
    return "failed" if pod.status.phase == "Failed" else "succeeded"
