"""The whole scheduler under random lives of a cluster: no gang ever starts in part, no node is ever overcommitted.

Nodes and pods come and go, groups are created in any order, gates open, minimums change, binds are refused, the
scheduler restarts. After every step, once everything has settled and backoffs are over: a gang that never had its
minimum has no bound member, a constrained group lies in one domain, and a single pod that fits does not wait.
"""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from muster.api import groups as api
from muster.scheduler.queue.entity import EntityState
from tests.build.examples import examples
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod
from tests.build.scheduler import TestWorld, a_world

GROUPS = ("red", "green", "blue")
TREE = ("left", "right")


class Cluster(RuleBasedStateMachine):
    world: TestWorld

    @initialize(nodes=st.integers(1, 3), seed=st.integers(0, 5))
    def start(self, nodes: int, seed: int) -> None:
        self.count = 0
        self.minimums: dict[str, int] = {}
        self.lowered: set[str] = set()
        self.lost: set[str] = set()  # groups that lost a member after they ran
        self.world = a_world(seed=seed)
        for i in range(nodes):
            self.world.add(a_node(f"n{i}", cpu=3, rack=f"r{i // 2}"))

    def _name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"

    @rule(group=st.sampled_from(GROUPS), minimum=st.integers(1, 4), rack=st.booleans())
    def create_group(self, group: str, minimum: int, rack: bool) -> None:
        if group in self.minimums:
            return
        self.minimums[group] = minimum
        self.world.add(a_gang(group, minimum, topology=RACK if rack else None))

    @rule(minimum=st.integers(1, 3))
    def create_tree(self, minimum: int) -> None:
        if "left" in self.minimums:
            return
        self.world.add(a_composite("top", 2))
        for name in TREE:
            self.minimums[name] = minimum
            self.world.add(a_gang(name, minimum, parent="top"))

    @rule(group=st.sampled_from(GROUPS + TREE), cpu=st.integers(1, 2), count=st.integers(1, 5), gated=st.booleans())
    def create_pods(self, group: str, cpu: int, count: int, gated: bool) -> None:
        for _ in range(count):
            gates = ["hold"] if gated and self.count % 5 == 0 else []
            self.world.add(a_pod(self._name(group), group, cpu=cpu, created=self.count, gates=gates))

    @rule(cpu=st.integers(1, 3))
    def create_single(self, cpu: int) -> None:
        self.world.add(a_pod(self._name("solo"), cpu=cpu, created=self.count))

    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        names = sorted(name for (kind, _, name) in self.world.objects if kind == "Pod")
        if names:
            name = data.draw(st.sampled_from(names))
            if self.world.pod(name).spec.node_name:
                self.lost.add(name.rsplit("-", 1)[0])
            self.world.remove("Pod", name)

    @rule(data=st.data())
    def finish_pod(self, data: st.DataObject) -> None:
        names = sorted(self.world.bound())
        if names:
            name = data.draw(st.sampled_from(names))
            self.lost.add(name.rsplit("-", 1)[0])
            self.world.finish(name)

    @rule(data=st.data())
    def open_gate(self, data: st.DataObject) -> None:
        gated = [n for n in self.world.pending() if self.world.pod(n).spec.scheduling_gates]
        if gated:
            pod = self.world.pod(data.draw(st.sampled_from(gated)))
            self.world.add(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=None)))

    @rule()
    def add_node(self) -> None:
        if self.count < 40:
            self.world.add(a_node(self._name("extra"), cpu=2, rack="r9"))

    @rule(data=st.data())
    def refuse_a_bind(self, data: st.DataObject) -> None:
        pending = self.world.pending()
        if pending:
            self.world.refuse_binds.add(data.draw(st.sampled_from(pending)))

    @rule()
    def one_turn(self) -> None:
        self.world.step()

    @rule(seconds=st.sampled_from([0.5, 3.0, 70.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.wait(seconds)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @invariant()
    def nothing_is_half_done_at_rest(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.run()
        self._end_backoffs()
        self._no_partial_gang()
        self._one_rack_each()

    def _end_backoffs(self) -> None:
        """A refused bind is tried again after a backoff of at most ten seconds; until then its gang is not at rest."""
        for _ in range(20):
            entities = self.world.scheduler.state.queue.entities.values()
            if not any(entity.state is EntityState.BACKOFF for entity in entities):
                return
            self.world.wait(1.0)
        raise AssertionError("a backoff does not end")

    def _no_partial_gang(self) -> None:
        for group, minimum in self.minimums.items():
            if group in self.lost:
                continue
            bound = len(self.world.bound(f"{group}-"))
            assert bound == 0 or bound >= minimum, f"{group} is bound in part: {bound} of {minimum}"
        left, right = (len(self.world.bound(f"{name}-")) for name in TREE)
        if not self.lost & set(TREE):
            assert (left > 0) == (right > 0), "half a tree is bound"

    def _one_rack_each(self) -> None:
        for group in GROUPS:
            if group in self.minimums and self.world.get("PodGroup", group).spec.scheduling_constraints:
                racks = {self.world.domain(name) for name in self.world.bound(f"{group}-")}
                assert len(racks) <= 1, f"{group} lies in {racks}"

    @invariant()
    def what_fits_is_bound(self) -> None:
        """A single pod that a node has room for does not wait, unless it is gated."""
        if not hasattr(self, "world"):
            return
        for name in self.world.pending("solo-"):
            condition = self.world.condition("Pod", name)
            assert condition is not None, f"{name} waits without a word"
            assert condition.reason == "Unschedulable"

    def teardown(self) -> None:
        if hasattr(self, "world"):
            for group in self.minimums:
                condition = self.world.condition("PodGroup", group)
                quorum = self.world.condition("PodGroup", group, api.QUORUM_MET)
                assert quorum is None or condition is not None


TestCluster = Cluster.TestCase
TestCluster.settings = settings(
    max_examples=examples(120), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
