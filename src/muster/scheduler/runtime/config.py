"""KubeSchedulerConfiguration v1: profiles with their plugins, weights and arguments, and the backoff times.

A configuration of kube-scheduler is accepted as it is. What has no effect here (`parallelism`, or a point at which a
plugin does nothing here) is accepted, and named in one note. Unknown plugins, unknown fields and extenders are errors;
the message names the path and what is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import msgspec

from muster.scheduler.framework.plugin import Plugin
from muster.scheduler.plugins import DEFAULT
from muster.scheduler.runtime.profile import (
    BUILT_IN,
    DEFAULT_NAME,
    POD_GROUP_POST_FILTER,
    POST_FILTER,
    PREEMPTION_POINTS,
    Profile,
    default_profile,
)

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

# The fields of the file: those read here, those that the engine reads, those without effect.
_EFFECTIVE = ("apiVersion", "kind", "profiles", "podInitialBackoffSeconds", "podMaxBackoffSeconds", "extenders")
_ENGINE_SECTIONS = ("leaderElection", "clientConnection", "healthzBindAddress", "metricsBindAddress", "enableProfiling")
_NO_EFFECT = ("parallelism", "percentageOfNodesToScore", "enableContentionProfiling", "delayCacheUntilActive")

_SECTION_FIELDS = {
    "leaderElection": (
        "leaderElect",
        "leaseDuration",
        "renewDeadline",
        "retryPeriod",
        "resourceLock",
        "resourceName",
        "resourceNamespace",
    ),
    "clientConnection": ("kubeconfig", "qps", "burst", "contentType", "acceptContentTypes"),
}
_SECTION_FIELDS_WITHOUT_EFFECT = ("contentType", "acceptContentTypes")

# The extension points beside filter and score, and which of the built-in plugins act there.
_OTHER_POINTS: Mapping[str, tuple[str, ...]] = {
    "queueSort": ("PrioritySort",),
    "preEnqueue": ("SchedulingGates", "GangScheduling"),
    "preFilter": ("NodeDeclaredFeatures",),
    POST_FILTER: ("DefaultPreemption",),
    "preScore": (),
    "reserve": (),
    "permit": ("GangScheduling",),
    "preBind": (),
    "bind": ("DefaultBinder",),
    "postBind": (),
    "placementGenerate": ("TopologyPlacementGenerator",),
    "placementScore": ("PodGroupPodsCount",),
    POD_GROUP_POST_FILTER: ("DefaultPreemption",),
}
_POINTS = ("multiPoint", "filter", "score", *_OTHER_POINTS)
# Built-in plugins that can be switched off; the work of the others is always done.
_OPTIONAL = ("DefaultPreemption", "GangScheduling")

_ARGS_WITHOUT_EFFECT = {
    "DefaultPreemption": ("minCandidateNodesPercentage", "minCandidateNodesAbsolute"),
    "DynamicResources": ("filterTimeout", "bindingTimeout"),
}

SCHEDULER_ENTRY = "Muster"  # the name in `pluginConfig` of the scheduler's own settings; it is no plugin

Kinds = Mapping[str, type[Plugin]]
Tree = Mapping[str, Any]
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class ReservationSettings:
    """Whether room is kept for groups that wait long, after how many seconds, and for how many a scheduler name."""

    enabled: bool = True
    patience: float = 300.0
    most: int = 1


def _profiles() -> dict[str, Profile]:
    return {DEFAULT_NAME: default_profile()}


@dataclass(frozen=True)
class Config:
    """The configuration of a scheduler. Times are in seconds.

    `notes` is one sentence that names the settings without effect, if there are any. `engine` holds the sections of the
    file that are not about scheduling (leader election, client connection), as they are.
    """

    profiles: dict[str, Profile] = field(default_factory=_profiles)
    pod_initial_backoff: float = 1.0
    pod_max_backoff: float = 10.0
    bind_timeout: float = 300.0
    expected_members_timeout: float = 300.0  # so long a seat is held for a member that does not come
    budget_steps: int = 2_500  # of one search; about 40 microseconds each, 0.1 s in the hardest cases
    seed: int = 0
    reservations: ReservationSettings = ReservationSettings()
    notes: tuple[str, ...] = ()
    engine: Mapping[str, Any] = field(default_factory=dict[str, Any])


def default_config(*names: str) -> Config:
    """The default profile under each of the scheduler names."""
    return Config(profiles={name: default_profile(name) for name in names or (DEFAULT_NAME,)})


def load(obj: Tree, *, extra: Iterable[type[Plugin]] = (), default_name: str = DEFAULT_NAME) -> Config:
    """The configuration in a parsed file. `extra` are plugins of the user, disabled until a profile enables them."""
    _check_head(obj)
    kinds = {kind.name: kind for kind in (*DEFAULT, *extra)}
    without_effect = [name for name in _NO_EFFECT if obj.get(name) is not None] + _check_sections(obj)
    initial, longest = _seconds(obj, "podInitialBackoffSeconds", 1), _seconds(obj, "podMaxBackoffSeconds", 10)
    if longest < initial:
        raise ValueError(f"podMaxBackoffSeconds is {longest}, less than podInitialBackoffSeconds ({initial})")
    profiles: dict[str, Profile] = {}
    settings = _SchedulerArgs()
    entries: Iterable[Tree] = obj.get("profiles") or ({},)
    for i, entry in enumerate(entries):
        name: str = entry.get("schedulerName") or default_name
        if name in profiles:
            raise ValueError(f"profiles[{i}].schedulerName: {name} has a profile already")
        profiles[name] = _Reader(f"profiles[{i}]", kinds, without_effect, settings).profile(name, entry)
    return Config(
        profiles,
        pod_initial_backoff=initial,
        pod_max_backoff=longest,
        bind_timeout=settings.bind_timeout,
        expected_members_timeout=settings.expected_members_timeout,
        budget_steps=settings.budget_steps,
        reservations=settings.reservations,
        notes=(f"no effect here: {', '.join(dict.fromkeys(without_effect))}",) if without_effect else (),
        engine={name: obj[name] for name in _ENGINE_SECTIONS if name in obj},
    )


def _check_head(obj: Tree) -> None:
    if obj.get("apiVersion") != API_VERSION or obj.get("kind") != KIND:
        found = f"{obj.get('apiVersion')}, {obj.get('kind')}"
        raise ValueError(f"expected apiVersion {API_VERSION} and kind {KIND}, found {found}")
    known = (*_EFFECTIVE, *_ENGINE_SECTIONS, *_NO_EFFECT)
    _only("", obj, known)
    if obj.get("extenders"):
        raise ValueError("extenders are not supported: write the rule as a constraint and enable it in the profile")


def _check_sections(obj: Tree) -> list[str]:
    """Refuse unknown fields of the sections that the engine reads; gives those without effect."""
    without_effect: list[str] = []
    for name, known in _SECTION_FIELDS.items():
        section: Tree = obj.get(name) or {}
        _only(f"{name}.", section, known)
        without_effect += [f"{name}.{field}" for field in _SECTION_FIELDS_WITHOUT_EFFECT if section.get(field)]
    return without_effect


def _only(where: str, obj: Tree, known: Iterable[str]) -> None:
    allowed = sorted(known)
    for name in obj:
        if name not in allowed:
            raise ValueError(f"{where}{name}: unknown field; known are {', '.join(allowed)}")


def _seconds(obj: Tree, name: str, default: int) -> float:
    found = obj.get(name)
    if found is None:
        return float(default)
    if isinstance(found, bool) or not isinstance(found, int | float) or found <= 0:
        raise ValueError(f"{name} is {found!r}; it must be a number above 0")
    return float(found)


def _count(path: str, found: Any) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or found <= 0:
        raise ValueError(f"{path}: {found!r} is no whole number above 0")
    return found


def _number(path: str, found: Any) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < math.inf:
        raise ValueError(f"{path}: {found!r} is no number above 0")
    return float(found)


class _SchedulerArgs:
    """The `pluginConfig` entries `Muster` of all profiles.

    They are settings of the scheduler, which all profiles share: a field that several profiles set has one value.
    """

    # What is in plugin files was loaded by the caller, which gives it to `load` as `extra`.
    known = ("bindTimeoutSeconds", "budgetSteps", "expectedMembersTimeoutSeconds", "pluginFiles", "reservations")

    def __init__(self) -> None:
        self.bind_timeout = Config.bind_timeout
        self.expected_members_timeout = Config.expected_members_timeout
        self.budget_steps = Config.budget_steps
        self.reservations = Config.reservations
        self._set_at: dict[str, str] = {}  # field -> the path that set it first

    def add(self, where: str, args: Tree) -> None:
        """Read the arguments of one entry; ValueError names the path of what is wrong."""
        steps, timeout = args.get("budgetSteps"), args.get("bindTimeoutSeconds")
        if steps is not None:
            steps = _count(f"{where}.budgetSteps", steps)
            self.budget_steps = self._agreed(where, "budgetSteps", steps, self.budget_steps)
        if timeout is not None:
            timeout = _number(f"{where}.bindTimeoutSeconds", timeout)
            self.bind_timeout = self._agreed(where, "bindTimeoutSeconds", timeout, self.bind_timeout)
        longest = args.get("expectedMembersTimeoutSeconds")
        if longest is not None:
            longest = _number(f"{where}.expectedMembersTimeoutSeconds", longest)
            self.expected_members_timeout = self._agreed(
                where, "expectedMembersTimeoutSeconds", longest, self.expected_members_timeout
            )
        if args.get("reservations") is not None:
            self._add_reservations(f"{where}.reservations", args["reservations"])

    def _add_reservations(self, where: str, args: Any) -> None:
        if not isinstance(args, Mapping):
            raise ValueError(f"{where}: {args!r} is no object")
        section = cast("Tree", args)
        _only(f"{where}.", section, ("enabled", "patienceSeconds", "max"))
        enabled, patience, most = section.get("enabled"), section.get("patienceSeconds"), section.get("max")
        found = self.reservations
        if enabled is not None:
            if not isinstance(enabled, bool):
                raise ValueError(f"{where}.enabled: {enabled!r} is neither true nor false")
            found = replace(found, enabled=self._agreed(where, "enabled", enabled, found.enabled))
        if patience is not None:
            patience = _number(f"{where}.patienceSeconds", patience)
            found = replace(found, patience=self._agreed(where, "patienceSeconds", patience, found.patience))
        if most is not None:
            most = _count(f"{where}.max", most)
            found = replace(found, most=self._agreed(where, "max", most, found.most))
        self.reservations = found

    def _agreed(self, where: str, name: str, value: Number, before: Number) -> Number:
        path = f"{where}.{name}"
        first = self._set_at.setdefault(name, path)
        if first != path and value != before:
            raise ValueError(f"{path}: {value} differs from {before} in {first}; all profiles share one scheduler")
        return value


class _Reader:
    """Reads one profile; `path` is its place in the file, `without_effect` collects the paths that change nothing."""

    def __init__(self, path: str, kinds: Kinds, without_effect: list[str], settings: _SchedulerArgs) -> None:
        self.path = path
        self.kinds = kinds
        self.without_effect = without_effect
        self.settings = settings
        self.known = (*kinds, *BUILT_IN)

    def profile(self, scheduler_name: str, entry: Tree) -> Profile:
        _only(f"{self.path}.", entry, ("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"))
        if entry.get("percentageOfNodesToScore") is not None:
            self.without_effect.append(f"{self.path}.percentageOfNodesToScore")
        plugins: Tree = entry.get("plugins") or {}
        _only(f"{self.path}.plugins.", plugins, _POINTS)
        defaults = {kind.name: kind.weight for kind in DEFAULT} | dict.fromkeys(BUILT_IN, 0)
        enabled = self._apply(defaults, plugins, "multiPoint")
        always = [name for name in BUILT_IN if name not in _OPTIONAL and name not in enabled]
        self.without_effect += [f"{self.path}.plugins.multiPoint.disabled[{name}]" for name in always]
        filters = self._apply(enabled, plugins, "filter")
        weights = self._apply(enabled, plugins, "score")
        off = {(point, name) for point in _OTHER_POINTS for name in self._disabled_at(point, plugins, enabled)}
        preempting = [
            p for p in PREEMPTION_POINTS if "DefaultPreemption" in enabled and (p, "DefaultPreemption") not in off
        ]
        gone = {name for point, name in off if point != POD_GROUP_POST_FILTER}
        args = self._args(entry)
        enabled_names = [name for name in {**enabled, **filters, **weights} if name in self.kinds]
        try:
            return Profile(
                scheduler_name,
                [self._plugin(name, args.get(name)) for name in enabled_names],
                filters=frozenset(filters),
                weights=weights,
                built_in=frozenset(name for name in enabled if name in BUILT_IN and name not in gone),
                preempting=frozenset(preempting),
            )
        except ValueError as fault:
            raise ValueError(f"{self.path}: {fault}") from None

    def _apply(self, names: Mapping[str, int], plugins: Tree, point: str) -> dict[str, int]:
        """Names and weights after the plugins that one extension point disables and enables."""
        section: Tree = plugins.get(point) or {}
        where = f"{self.path}.plugins.{point}."
        _only(where, section, ("enabled", "disabled"))
        found = dict(names)
        for entry in section.get("disabled") or ():
            if entry.get("name") == "*":
                found.clear()
            else:
                found.pop(self._name(f"{where}disabled", entry), None)
        for entry in section.get("enabled") or ():
            name = self._name(f"{where}enabled", entry)
            own = self.kinds[name].weight if name in self.kinds else 0
            found[name] = self._weight(f"{where}enabled", entry) or names.get(name) or own or 1
        return found

    def _disabled_at(self, point: str, plugins: Tree, enabled: Mapping[str, int]) -> Iterator[str]:
        """The optional built-in plugins that one of the other extension points switches off."""
        after = self._apply(enabled, plugins, point)
        acting = [name for name in _OTHER_POINTS[point] if name in _OPTIONAL]
        yield from (name for name in acting if name in enabled and name not in after)
        section: Tree = plugins.get(point) or {}
        named = [entry["name"] for entry in section.get("disabled") or ()]
        others = [name for name in named if name != "*" and name not in acting]
        if others or {*after} - {*enabled} or ("*" in named and not acting):
            self.without_effect.append(f"{self.path}.plugins.{point}")

    def _name(self, where: str, entry: Tree, *also: str) -> str:
        name = entry.get("name")
        known = (*self.known, *also)
        if name not in known:
            raise ValueError(f"{where}: unknown plugin {name!r}; known are {', '.join(sorted(known))}")
        return cast(str, name)

    def _weight(self, where: str, entry: Tree) -> int:
        weight = entry.get("weight") or 0
        if not isinstance(weight, int) or weight < 0:
            raise ValueError(f"{where}: weight of {entry.get('name')} is {weight!r}; it must be a whole number above 0")
        return weight

    def _args(self, entry: Tree) -> dict[str, Tree]:
        found: dict[str, Tree] = {}
        for i, section in enumerate(entry.get("pluginConfig") or ()):
            where = f"{self.path}.pluginConfig[{i}]"
            name = self._name(where, section, SCHEDULER_ENTRY)
            if name in found:
                raise ValueError(f"{where}: {name} is configured twice")
            args: Tree = section.get("args") or {}
            if not isinstance(args, Mapping):
                raise ValueError(f"{where}.args: {args!r} is no object")
            self._check_args(f"{where}.args", name, args)
            found[name] = args
        return found

    def _check_args(self, where: str, name: str, args: Tree) -> None:
        kind = self.kinds.get(name)
        if kind is not None:
            known = kind.known_args
        else:
            known = _SchedulerArgs.known if name == SCHEDULER_ENTRY else _ARGS_WITHOUT_EFFECT.get(name, ())
        if known is not None:
            _only(f"{where}.", args, (*known, "apiVersion", "kind"))
        if name == SCHEDULER_ENTRY:
            self.settings.add(where, args)
        elif args and (kind is None or name in _ARGS_WITHOUT_EFFECT):
            self.without_effect.append(f"{self.path}.pluginConfig[{name}].args")

    def _plugin(self, name: str, args: Tree | None) -> Plugin:
        try:
            return self.kinds[name](args)
        except (ValueError, TypeError, KeyError, msgspec.ValidationError) as fault:
            raise ValueError(f"arguments of {name}: {fault}") from None
