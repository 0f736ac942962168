"""Profiles: the plugins of one scheduler name, their order and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.scheduler.cache.node_columns import RANK_BITS
from muster.scheduler.framework.plugin import MAX_SCORE, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.plugins import DEFAULT

DEFAULT_NAME = "default-scheduler"

# Plugins of kube-scheduler whose work the queue, the cycle or the planner does here; a profile may name them.
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

# The extension points at which preemption is switched: for single pods, and for groups.
POST_FILTER, POD_GROUP_POST_FILTER = "postFilter", "podGroupPostFilter"
PREEMPTION_POINTS = (POST_FILTER, POD_GROUP_POST_FILTER)


class Profile:
    """The configured plugins of one scheduler name. `filters` run in order, `scorers` are pairs of plugin and weight.

    `enabled` are the names of all enabled plugins, built-in ones included; `preempting` says whose preemption is on.
    """

    def __init__(
        self,
        scheduler_name: str,
        plugins: Sequence[Plugin],
        *,
        filters: frozenset[str] | None = None,
        weights: Mapping[str, int] | None = None,
        built_in: frozenset[str] = frozenset(BUILT_IN),
        preempting: frozenset[str] = frozenset(PREEMPTION_POINTS),
    ) -> None:
        """By default all plugins filter, and score with their own weights; `filters` and `weights` name others."""
        self.scheduler_name = scheduler_name
        self.plugins = tuple(plugins)
        self.filters = tuple(plugin for plugin in plugins if filters is None or plugin.name in filters)
        given = {plugin.name: plugin.weight for plugin in plugins} if weights is None else weights
        self.scorers = tuple(
            (plugin, given[plugin.name])
            for plugin in plugins
            if plugin.score_depends_on is not None and given.get(plugin.name)
        )
        self.counts_all_resources = any(plugin.counts_all_resources for plugin in self.filters)
        self.pod_labels = frozenset(key for plugin in plugins for key in plugin.pod_labels)
        self.enabled = built_in | {plugin.name for plugin in plugins}
        self.preempting = preempting
        self._ignored: dict[str, bool] = {}  # by resource
        # A score and a node's rank are compared as one number of 62 bits (`Feasibility.key`).
        heaviest = ((1 << (62 - RANK_BITS)) - 1) // MAX_SCORE
        if sum(weight for _, weight in self.scorers) > heaviest:
            raise ValueError(f"the weights of profile {scheduler_name} add up to more than {heaviest}")

    def plugin(self, name: str) -> Plugin | None:
        """The plugin of that name, if the profile has it."""
        return next((plugin for plugin in self.plugins if plugin.name == name), None)

    def ignores(self, resource: str) -> bool:
        """Whether no filter of the profile compares requests of this resource with the node's allocatable."""
        found = self._ignored.get(resource)
        if found is None:
            found = resource != "pods" and all(plugin.ignores(resource) for plugin in self.filters)
            self._ignored[resource] = found
        return found

    def __repr__(self) -> str:
        return f"<Profile {self.scheduler_name}>"


def profile_of(shape: Shape) -> Profile:
    """The profile of a shape as its own type; the evaluator makes shapes only with a `Profile`."""
    assert isinstance(shape.profile, Profile)
    return shape.profile


def default_profile(scheduler_name: str = DEFAULT_NAME) -> Profile:
    """The plugins and weights of kube-scheduler's default profile."""
    return Profile(scheduler_name, [kind() for kind in DEFAULT])
