"""A profile: the rules that one scheduler name goes by, their order and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.scheduler.cache.node_columns import RANK_BITS
from muster.scheduler.framework.plugin import MAX_SCORE, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.plugins import DEFAULT

DEFAULT_NAME = "default-scheduler"


# Rules that the queue, the cycle or the planner keep rather than a constraint, under the names a profile may use.
BUILT_IN = (
    "SchedulingGates",
    "PrioritySort",
    "DeferredPodScheduling",
    "DefaultPreemption",
    "DefaultBinder",
    "NodeDeclaredFeatures",
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
)


class Profile:
    """Configured rules. `filters` judge in order; `scorers` are weighted. Two profiles are equal only if the same."""

    def __init__(
        self,
        scheduler_name: str,
        constraints: Sequence[Plugin],
        *,
        filters: frozenset[str] | None = None,
        weights: Mapping[str, int] | None = None,
        others: frozenset[str] = frozenset(BUILT_IN),
    ) -> None:
        """All rules filter, and score with their own weights, unless told otherwise by name."""
        self.scheduler_name = scheduler_name
        self.plugins = tuple(constraints)
        self.filters = tuple(c for c in constraints if filters is None or c.name in filters)
        given = {c.name: c.weight for c in constraints} if weights is None else weights
        self.scorers = tuple(
            (c, given[c.name]) for c in constraints if c.score_depends_on is not None and given.get(c.name)
        )
        self.counts_all_resources = any(c.counts_all_resources for c in self.filters)
        self.pod_labels = frozenset(key for c in constraints for key in c.pod_labels)
        self.enabled = others | {c.name for c in constraints}
        heaviest = ((1 << (62 - RANK_BITS)) - 1) // MAX_SCORE
        if sum(weight for _, weight in self.scorers) > heaviest:
            raise ValueError(f"the weights of profile {scheduler_name} add up to more than {heaviest}")

    def plugin(self, name: str) -> Plugin | None:
        """The rule of that name, if the profile has it."""
        return next((c for c in self.plugins if c.name == name), None)

    def ignores(self, resource: str) -> bool:
        """Whether room of this resource is nobody's business under this profile."""
        return resource != "pods" and all(c.ignores(resource) for c in self.filters)

    def __repr__(self) -> str:
        return f"<Profile {self.scheduler_name}>"


def profile_of(shape: Shape) -> Profile:
    """The profile of a shape; the evaluator makes shapes under nothing else."""
    assert isinstance(shape.profile, Profile)
    return shape.profile


def default_profile(scheduler_name: str = DEFAULT_NAME) -> Profile:
    """The rules and weights that kube-scheduler starts with."""
    return Profile(scheduler_name, [kind() for kind in DEFAULT])
