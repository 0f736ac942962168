"""Small scenes for the planner: nodes, running pods, and demands built by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from muster.api.types import Node, Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.check_proof import check_proof
from muster.scheduler.checking.validate import validate
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PendingPod, PodGroupRequest, leaves
from muster.scheduler.placement.verdict import Infeasible, Placed, Undecided
from muster.scheduler.planning.plan import DEFAULT_STEPS, plan
from muster.scheduler.runtime.profile import Profile, default_profile
from tests.build.cluster import evaluator_of
from tests.build.objects import a_node, a_pod


@dataclass
class Scene:
    """A cluster and the builders of demands on it."""

    seed: int = 0
    cluster: Cluster = field(init=False)
    profile: Profile = field(default_factory=default_profile)
    pods: dict[str, Pod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster = Cluster(seed=self.seed)

    def nodes(self, *nodes: Node) -> Scene:
        for node in nodes:
            self.cluster.change("Node", node)
        return self

    def running(self, *pods: Pod) -> Scene:
        for pod in pods:
            self.cluster.change("Pod", pod)
        return self

    def member(self, pod: Pod, priority: int = 0) -> PendingPod:
        """A pod that waits, under a uid of its own: the planner never looks a member up in the cluster."""
        name, uid = pod.metadata.name, f"uid-{pod.metadata.name}"
        self.pods[uid] = pod
        return PendingPod(uid, "default", name, evaluator_of(self.cluster).shape(pod, self.profile), priority)

    def gang(
        self,
        name: str,
        *pods: Pod,
        min_count: int | None = None,
        topology: str = "",
        bound: int = 0,
        domains: tuple[str, ...] = (),
    ) -> PodGroupRequest:
        members = tuple(self.member(pod) for pod in pods)
        minimum = len(pods) + bound if min_count is None else min_count
        return PodGroupRequest(EntityKey("PodGroup", "default", name), minimum, bound, members, topology, domains)

    def uniform(self, name: str, count: int, cpu: float = 1, **more: Any) -> PodGroupRequest:
        keep = {k: more.pop(k) for k in ("min_count", "topology", "bound", "domains") if k in more}
        return self.gang(name, *(a_pod(f"{name}-{i}", cpu=cpu, **more) for i in range(count)), **keep)

    def composite(
        self,
        name: str,
        *children: GroupRequest,
        min_groups: int | None = None,
        topology: str = "",
        domains: tuple[str, ...] = (),
    ) -> CompositeRequest:
        minimum = len(children) if min_groups is None else min_groups
        return CompositeRequest(EntityKey("CompositePodGroup", "default", name), minimum, children, topology, domains)

    def fresh(self, demand: GroupRequest) -> GroupRequest:
        """The demand with the shapes of this moment: a selector met later may have told pods apart."""
        if isinstance(demand, PodGroupRequest):
            return demand.with_members(tuple(self.member(self.pods[m.uid], m.priority) for m in demand.members))
        return demand.with_children(tuple(self.fresh(child) for child in demand.children))

    def plan(self, demand: GroupRequest, steps: int = DEFAULT_STEPS, **more: Any) -> Result:
        demand = self.fresh(self.fresh(demand))  # the first pass makes all selectors known
        before = self.cluster.used.copy()
        with evaluator_of(self.cluster).trial() as trial:
            verdict = plan(demand, trial, Budget(steps), **more)
            assert (self.cluster.used == before).all(), "the trial was not left as it was found"
        if isinstance(verdict, Placed):
            fault = validate(verdict, demand, self.cluster)
            assert fault is None, fault
        elif isinstance(verdict, Infeasible):
            doubt = check_proof(verdict, demand, self.cluster)
            assert doubt is None, doubt
        return Result(self, demand, verdict)


def slots(count: int) -> Scene:
    """So many nodes of one cpu."""
    return Scene().nodes(*(a_node(f"n{i}", cpu=1) for i in range(count)))


def racks(**sizes: int) -> Scene:
    """Nodes of one cpu, so many in each rack, all in one block."""
    scene = Scene()
    for rack, count in sizes.items():
        scene.nodes(*(a_node(f"{rack}-{i}", cpu=1, rack=rack, block="b0") for i in range(count)))
    return scene


@dataclass
class Result:
    scene: Scene
    demand: GroupRequest
    verdict: Placed | Infeasible | Undecided

    @property
    def placed(self) -> bool:
        return isinstance(self.verdict, Placed)

    def nodes_of(self, group: str) -> dict[str, str]:
        assert isinstance(self.verdict, Placed), self.verdict
        uids = {m.uid: m.name for leaf in leaves(self.demand) if leaf.key.name == group for m in leaf.members}
        return {uids[seat.uid]: seat.node for seat in self.verdict.assignments if seat.uid in uids}

    def seats_of(self, group: str) -> int:
        return len(self.nodes_of(group))

    def values_of(self, group: str, key: str) -> set[str]:
        found = self.nodes_of(group).values()
        return {(self.scene.cluster.node_objects[n].metadata.labels or {}).get(key, "") for n in found}
