"""A random life of a small, crowded cluster: pods and groups that compete, and everything that can end their waiting.

A life is a list of deeds, each with a number that decides everything else about it, so a life can be repeated and a
failing one made smaller. Names are few and used again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any, cast

import msgspec

from muster.api import types
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.runtime.config import load
from tests.build.objects import HOSTNAME, RACK, a_basic, a_composite, a_gang, a_node, a_pod, apart, near
from tests.build.scheduler import TestWorld

NODES = ("n0", "n1", "n2", "n3", "n4")
SOLO = tuple(f"p{i}" for i in range(8))
GANGS = ("g0", "g1", "g2", "g3")
TREES = ("c0", "c1")
APPS = ("a", "b")
PRIORITIES = (0, 0, 0, 5, 10)
MANY_SHAPES = 18
LONG_SEARCH = 100_000  # steps
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
Deed = tuple[str, int]


def configured(**reservations: int) -> dict[str, Any]:
    """What is bound in part is given back soon: since when it is, a new scheduler does not know."""
    entry = {"name": "Muster", "args": {"bindTimeoutSeconds": 20, "reservations": reservations}}
    return HEAD | {"profiles": [{"pluginConfig": [entry]}]}


class CrowdedWorld(TestWorld):
    """A world whose API refuses some binds and evictions or answers late. Nodes may shrink below what they hold."""

    def __init__(self, nodes: Iterable[types.Node] = (), **options: Any) -> None:
        self.refuse_evictions: set[str] = set()  # names of pods whose deletion the API refuses once
        self.slow_binds = False  # binds are carried out when `answer` is called
        self._unanswered: list[tuple[ObjectRef, str]] = []
        super().__init__(nodes, **options)

    def check(self) -> None:
        pass

    def _evict(self, ref: Any) -> None:
        if ref.name in self.refuse_evictions:
            self.refuse_evictions.discard(ref.name)
            self._tell(events.EvictionFailed(ref.uid, "refused"))
        else:
            super()._evict(ref)

    def _bind(self, ref: ObjectRef, node: str) -> None:
        if self.slow_binds:
            self._unanswered.append((ref, node))
        else:
            super()._bind(ref, node)

    def answer(self) -> None:
        """The binds that wait are carried out."""
        waiting, self._unanswered = self._unanswered, []
        for ref, node in waiting:
            super()._bind(ref, node)

    def restarted(self, *, patient: bool = False) -> CrowdedWorld:
        """Another world with the same objects at the same time, and a scheduler that knows nothing else.

        `patient`: it searches for much longer.
        """
        other = CrowdedWorld()
        other.now, other.objects, other.slow_victims = self.now, dict(self.objects), self.slow_victims
        config = self.scheduler.state.config
        other.scheduler = type(self.scheduler)(replace(config, budget_steps=LONG_SEARCH) if patient else config)
        for (kind, _, _), obj in sorted(self.objects.items(), key=lambda item: item[0]):
            other._tell(events.ObjectUpdated(kind, obj))
        other._tell(events.CacheSynced())
        return other


class Pressure:
    """One world, and what is done to it.

    Without `plain` pods all have a rule of their own: terms, ports, a selector or tolerations.
    """

    def __init__(self, *, plain: bool = True) -> None:
        self.most_rules = 15 if plain else 6
        nodes = [a_node(f"n{i}", cpu=4, rack=f"r{i % 2}") for i in range(3)]
        self.world = CrowdedWorld(nodes, config=configured())
        self.number = 0

    def live(self, deeds: Iterable[Deed]) -> None:
        for name, number in deeds:
            rng = Random(number)
            DEEDS[name](self, rng)
            if rng.random() < 0.7:
                self.world.run()

    def settle(self, seconds: float) -> CrowdedWorld:
        """The API answers everything, and time passes."""
        self.world.slow_binds = False
        self.world.answer()
        return cast(CrowdedWorld, self.world.wait(seconds))

    def _create(self, obj: Any) -> None:
        """Add an object that has a uid of its own, even if one of its name was there before."""
        self.number += 1
        meta = msgspec.structs.replace(obj.metadata, uid=f"{obj.metadata.uid}-{self.number}")
        self.world.add(msgspec.structs.replace(obj, metadata=meta))

    def _has(self, kind: str, name: str) -> bool:
        return (kind, "" if kind == "Node" else "ns", name) in self.world.objects

    def _names(self, kind: str) -> list[str]:
        return sorted(name for one, _, name in self.world.objects if one == kind)

    # --- pods --------------------------------------------------------------------------------------

    def _pod(self, rng: Random, name: str, group: str | None = None, **fields: Any) -> None:
        known: dict[str, Any] = {"created": self.number, "cpu": rng.choice((1, 1, 2, 3)), "owner": "job"}
        known["labels"] = {"app": rng.choice(APPS)}
        match rng.randint(0, self.most_rules):
            case 0:
                known["affinity"] = apart(rng.choice((HOSTNAME, RACK)), app=rng.choice(APPS))
            case 1:
                known["affinity"] = near(rng.choice((HOSTNAME, RACK)), app=rng.choice(APPS))
            case 2 | 3:
                selector = {"matchLabels": {"app": known["labels"]["app"]}}
                spread = {"maxSkew": 1, "topologyKey": rng.choice((HOSTNAME, RACK)), "labelSelector": selector}
                known["topologySpreadConstraints"] = [spread | {"whenUnsatisfiable": "DoNotSchedule"}]
            case 4:
                known["container"] = {"ports": [{"containerPort": 80, "hostPort": 80}]}
            case 5:
                known["nodeSelector"] = {RACK: rng.choice(("r0", "r1", "r2"))}
            case 6:
                known["tolerations"] = [{"key": "busy", "operator": "Exists"}]
            case _:
                pass
        self._create(a_pod(name, group, **(known | fields)))

    def create_pod(self, rng: Random) -> None:
        missing = [name for name in SOLO if not self._has("Pod", name)]
        if missing:
            policy = "Never" if rng.random() < 0.2 else None
            gates = ["hold"] if rng.random() < 0.05 else []
            self._pod(rng, rng.choice(missing), priority=rng.choice(PRIORITIES), policy=policy, gates=gates)

    def other_schedulers_pod(self, rng: Random) -> None:
        """A pod that is bound by somebody else; it may be more than the node has left."""
        nodes, name = self._names("Node"), f"other-{rng.randint(0, 3)}"
        if nodes and not self._has("Pod", name):
            node = rng.choice(nodes)
            self._pod(rng, name, node=node, scheduler="someone", priority=rng.choice(PRIORITIES))

    def remove_pod(self, rng: Random) -> None:
        """Gone at once, being deleted, or finished."""
        if names := self._names("Pod"):
            name = rng.choice(names)
            match rng.choice(("gone", "terminating", "finished")):
                case "gone":
                    self.world.remove("Pod", name)
                case "terminating":
                    self.world.terminate(name)
                case _ if self.world.pod(name).spec.node_name:
                    self.world.finish(name, rng.choice(("Succeeded", "Failed")))
                case _:
                    pass

    def remove_nominated(self, rng: Random) -> None:
        """A pod that waits for its victims is gone, and its seat with it."""
        pods = [name for name in self._names("Pod") if self.world.pod(name).status.nominated_node_name]
        if pods:
            self.world.remove("Pod", rng.choice(pods))

    def relabel_pod(self, rng: Random) -> None:
        if names := self._names("Pod"):
            pod = self.world.pod(rng.choice(names))
            meta = msgspec.structs.replace(pod.metadata, labels={"app": rng.choice((*APPS, "c"))})
            self.world.add(msgspec.structs.replace(pod, metadata=meta))

    def open_gates(self, rng: Random) -> None:
        for name in self._names("Pod"):
            pod = self.world.pod(name)
            if pod.spec.scheduling_gates:
                spec = msgspec.structs.replace(pod.spec, scheduling_gates=None)
                self.world.add(msgspec.structs.replace(pod, spec=spec))

    def reap(self, rng: Random) -> None:
        self.world.reap()

    # --- groups ------------------------------------------------------------------------------------

    def create_gang(self, rng: Random) -> None:
        missing = [name for name in GANGS if not self._has("PodGroup", name)]
        if missing:
            self._gang(rng, rng.choice(missing), rng.choice(PRIORITIES), None)

    def create_tree(self, rng: Random) -> None:
        """Two gangs below one composite, or one of them below a second one between."""
        missing = [name for name in TREES if not self._has("CompositePodGroup", name)]
        if missing:
            name, priority = rng.choice(missing), rng.choice(PRIORITIES)
            self._composite(rng, name, rng.choice((1, 2)), priority, None)
            between = f"{name}-between"
            deep = rng.random() < 0.3
            if deep and not self._has("CompositePodGroup", between):
                self._composite(rng, between, 1, priority, name)
            for child in range(2):
                if not self._has("PodGroup", f"{name}-{child}"):
                    self._gang(rng, f"{name}-{child}", priority, between if deep and child else name)

    def _composite(self, rng: Random, name: str, minimum: int, priority: int, parent: str | None) -> None:
        fields: dict[str, Any] = {"priority": priority, "parent": parent, "created": self.number}
        fields["topology"] = RACK if rng.random() < 0.3 else None
        fields["mode"] = "all" if rng.random() < 0.1 else "single"
        self._create(a_composite(name, minimum, **fields))

    def _gang(self, rng: Random, name: str, priority: int, parent: str | None) -> None:
        size = rng.choice((1, 2, 2, 3, 4))
        fields: dict[str, Any] = {"priority": priority, "parent": parent, "created": self.number}
        fields["topology"] = RACK if rng.random() < 0.35 else None
        fields["mode"] = "all" if rng.random() < 0.2 else "single"
        fields["policy"] = "Never" if rng.random() < 0.2 else None
        basic = rng.random() < 0.1
        self._create(a_basic(name, **fields) if basic else a_gang(name, rng.randint(1, size), **fields))
        policy = {"policy": fields["policy"]}
        odd = rng.randrange(20)  # a member that has another priority than its group, mostly none
        alike = rng.choice((True, False))
        seed = rng.random()
        for i in range(size):
            shape = Random(seed) if alike else rng
            if not self._has("Pod", f"{name}-{i}"):
                own = rng.choice(PRIORITIES) if i == odd else priority
                self._pod(shape, f"{name}-{i}", name, priority=own, **policy)

    def create_gang_of_many_shapes(self, rng: Random) -> None:
        if self._has("PodGroup", "many"):
            return
        priority = rng.choice(PRIORITIES)
        self._create(a_gang("many", MANY_SHAPES, priority=priority, created=self.number))
        for i in range(MANY_SHAPES):
            if not self._has("Pod", f"many-{i}"):
                self._pod(Random(7), f"many-{i}", "many", priority=priority, cpu=f"{400 + 7 * i}m")

    def remove_group(self, rng: Random) -> None:
        """A group alone, or with its pods."""
        found = sorted((kind, name) for kind, _, name in self.world.objects if kind.endswith("PodGroup"))
        if found:
            kind, name = rng.choice(found)
            self.world.remove(kind, name)
            if rng.random() < 0.6:
                for pod in [one for one in self._names("Pod") if one.startswith(f"{name}-")]:
                    self.world.remove("Pod", pod)

    def change_group(self, rng: Random) -> None:
        """Another minimum, priority or disruption mode."""
        names = self._names("PodGroup")
        if names:
            obj = self.world.get("PodGroup", rng.choice(names))
            spec, name = obj.spec, obj.metadata.name
            match rng.randint(0, 2):
                case 0:
                    policy = a_gang(name, rng.randint(1, 3)).spec.scheduling_policy
                    spec = msgspec.structs.replace(spec, scheduling_policy=policy)
                case 1:
                    spec = msgspec.structs.replace(spec, priority=rng.choice(PRIORITIES))
                case _:
                    mode = a_gang(name, 1, mode=rng.choice(("all", "single"))).spec.disruption_mode
                    spec = msgspec.structs.replace(spec, disruption_mode=mode)
            self.world.add(msgspec.structs.replace(obj, spec=spec))

    # --- nodes -------------------------------------------------------------------------------------

    def change_node(self, rng: Random) -> None:
        """A node that is new, or grows, shrinks, is cordoned, tainted or moved to another rack."""
        name = rng.choice(NODES)
        taints = rng.choice(((), (), (), ("busy=:NoSchedule",), ("node.kubernetes.io/unreachable=:NoExecute",)))
        cpu, rack = rng.choice((0, 2, 4, 4, 6)), rng.choice(("r0", "r1", "r2"))
        old = self.world.objects.get(("Node", "", name))
        if old is not None and rng.random() < 0.7:  # only one thing changes
            kept = dict(old.metadata.labels or {})
            match rng.randint(0, 3):
                case 0:
                    self.world.add(a_node(name, cpu=cpu, labels=kept))
                case 1:
                    self.world.add(a_node(name, cpu=4, labels=kept, unschedulable=True))
                case 2:
                    self.world.add(a_node(name, cpu=4, labels=kept, taints=taints))
                case _:
                    self.world.add(a_node(name, cpu=4, rack=rack))
        else:
            self.world.add(a_node(name, cpu=cpu, rack=rack, taints=taints, unschedulable=rng.random() < 0.2))

    def remove_node(self, rng: Random) -> None:
        """With its pods, or they are left behind."""
        if nodes := self._names("Node"):
            lost = rng.choice(nodes)
            self.world.remove("Node", lost)
            if rng.random() < 0.6:
                for name, node in self.world.bound().items():
                    if node == lost:
                        self.world.remove("Pod", name)

    # --- the API and time --------------------------------------------------------------------------

    def refuse_bind(self, rng: Random) -> None:
        if names := self.world.pending():
            self.world.refuse_binds.add(rng.choice(names))

    def refuse_eviction(self, rng: Random) -> None:
        if names := list(self.world.bound()):
            self.world.refuse_evictions.add(rng.choice(names))

    def slow_victims(self, rng: Random) -> None:
        self.world.slow_victims = rng.random() < 0.7

    def slow_binds(self, rng: Random) -> None:
        self.world.slow_binds = True

    def answer(self, rng: Random) -> None:
        self.world.answer()
        self.world.slow_binds = rng.random() < 0.5

    def restart(self, rng: Random) -> None:
        """A new scheduler, which keeps room for groups sooner or later than the one before."""
        self.world.answer()
        patience, most = rng.choice((5, 20, 300)), rng.choice((1, 2))
        self.world.restart(load(configured(patienceSeconds=patience, max=most)))

    def pass_time(self, rng: Random) -> None:
        self.world.wait(rng.choice((0.5, 3.0, 15.0, 60.0)))


DEEDS: dict[str, Callable[[Pressure, Random], None]] = {
    deed.__name__: deed
    for deed in (
        Pressure.create_pod,
        Pressure.other_schedulers_pod,
        Pressure.remove_pod,
        Pressure.relabel_pod,
        Pressure.open_gates,
        Pressure.reap,
        Pressure.create_gang,
        Pressure.create_tree,
        Pressure.create_gang_of_many_shapes,
        Pressure.remove_group,
        Pressure.change_group,
        Pressure.change_node,
        Pressure.remove_node,
        Pressure.refuse_bind,
        Pressure.refuse_eviction,
        Pressure.slow_victims,
        Pressure.slow_binds,
        Pressure.answer,
        Pressure.restart,
        Pressure.pass_time,
    )
}
OFTEN = ("create_pod", "create_pod", "create_gang", "create_gang", "create_tree", "remove_pod", "change_node", "reap")
CHOICES = (*DEEDS, *OFTEN, *OFTEN)
DEEDS["remove_nominated"] = Pressure.remove_nominated
TENSE = ("create_pod", "create_pod", "create_gang", "remove_nominated", "other_schedulers_pod", "reap", "remove_pod")


def a_life(seed: int) -> list[Deed]:
    """The deeds of one life."""
    rng = Random(seed)
    return [(rng.choice(CHOICES), rng.randrange(1 << 30)) for _ in range(rng.randint(5, 30))]


def a_tense_life(seed: int) -> list[Deed]:
    """A short life in which most pods wait: victims leave slowly, and those that they leave for go before them."""
    rng = Random(seed)
    filled = [(rng.choice(("create_pod", "create_gang")), rng.randrange(1 << 30)) for _ in range(4)]
    deeds = [(rng.choice(TENSE), rng.randrange(1 << 30)) for _ in range(rng.randint(6, 16))]
    return [*filled, ("slow_victims", 0), *deeds]
