"""KubeSchedulerConfiguration: what is accepted, and with which message the rest is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.runtime.config import Config, default_config, load
from muster.scheduler.runtime.profile import BUILT_IN, Profile, default_profile
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
ALL_NAMES = [
    "SchedulingGates",
    "PrioritySort",
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "DeferredPodScheduling",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
]


class Mine(Plugin):
    name = "Mine"
    score_depends_on = DependsOn.NODE
    known_args = None


def a_profile(**entry) -> Profile:
    return load(HEAD | {"profiles": [entry]}, extra=[Mine]).profiles["default-scheduler"]


def weights(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scorers}


def filters(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def with_settings(*entries: dict | None) -> dict:
    """A file with one profile for each entry; its second section is the entry `Muster`, if there is one."""
    profiles = []
    for i, args in enumerate(entries):
        sections = [{"name": "NodeName"}, {"name": "Muster", "args": args}]
        profiles.append({"schedulerName": f"s{i}", "pluginConfig": sections if args is not None else sections[:1]})
    return HEAD | {"profiles": profiles}


def test_the_default_profile_has_the_known_weights():
    assert weights(default_profile()) == WEIGHTS
    assert weights(a_profile()) == WEIGHTS


def test_an_empty_file_is_the_default():
    config = load(HEAD)
    assert list(config.profiles) == ["default-scheduler"]
    assert (config.pod_initial_backoff, config.pod_max_backoff) == (1, 10)
    assert config.notes == ()
    assert list(Config().profiles) == ["default-scheduler"]


def test_a_default_name_is_used_where_the_file_gives_none():
    assert list(load(HEAD, default_name="muster").profiles) == ["muster"]
    assert list(default_config("muster", "default-scheduler").profiles) == ["muster", "default-scheduler"]


@pytest.mark.parametrize("name", ALL_NAMES)
def test_every_known_name_can_be_disabled_and_enabled(name):
    profile = a_profile(plugins={"multiPoint": {"disabled": [{"name": name}]}})
    assert name not in profile.enabled
    assert profile.plugin(name) is None
    again = a_profile(plugins={"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name}]}})
    assert again.enabled == {name}


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown plugin 'Odd'; known are .*NodeName.*SchedulingGates"):
        a_profile(plugins={"score": {"enabled": [{"name": "Odd"}]}})
    with pytest.raises(ValueError, match=r"profiles\[0\].pluginConfig\[0\]: unknown plugin 'Odd'"):
        a_profile(pluginConfig=[{"name": "Odd"}])


def test_weights_come_from_the_profile():
    profile = a_profile(plugins={"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 7}]}})
    assert weights(profile) == WEIGHTS | {"NodeResourcesFit": 7}
    profile = a_profile(plugins={"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 4}]}})
    assert weights(profile) == WEIGHTS | {"ImageLocality": 4}


def test_a_rule_can_stop_scoring_and_still_filter():
    profile = a_profile(plugins={"score": {"disabled": [{"name": "TaintToleration"}]}})
    assert "TaintToleration" not in weights(profile)
    assert "TaintToleration" in filters(profile)


def test_a_rule_can_stop_filtering_and_still_score():
    profile = a_profile(plugins={"filter": {"disabled": [{"name": "TaintToleration"}]}})
    assert "TaintToleration" in weights(profile)
    assert "TaintToleration" not in filters(profile)


def test_a_star_disables_everything_but_what_is_enabled_after_it():
    profile = a_profile(plugins={"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}})
    assert weights(profile) == {"ImageLocality": 1}


def test_a_users_rule_is_off_until_it_is_enabled():
    assert a_profile().plugin("Mine") is None
    profile = a_profile(
        plugins={"multiPoint": {"enabled": [{"name": "Mine"}]}}, pluginConfig=[{"name": "Mine", "args": {"any": 1}}]
    )
    mine = profile.plugin("Mine")
    assert mine is not None
    assert mine.args == {"any": 1}
    assert weights(profile)["Mine"] == 1


def test_arguments_reach_their_rule():
    args = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    fit = a_profile(pluginConfig=[{"name": "NodeResourcesFit", "args": args}]).plugin("NodeResourcesFit")
    assert fit is not None
    assert fit.strategy == "MostAllocated"


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ({"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}, "arguments of InterPodAffinity"),
        ({"name": "InterPodAffinity", "args": {"hard": 1}}, r"args.hard: unknown field; known are .*hardPodAffinity"),
        (
            {
                "name": "NodeAffinity",
                "args": {"addedAffinity": {"requiredDuringScheduling" + "IgnoredDuringExecution": 5}},
            },
            "arguments of NodeAffinity",
        ),
        ({"name": "NodeName", "args": {"x": 1}}, "unknown field"),
    ],
)
def test_wrong_arguments_are_refused_with_their_place(section, fault):
    with pytest.raises(ValueError, match=fault):
        a_profile(pluginConfig=[section])


def test_a_rule_configured_twice_is_an_error():
    with pytest.raises(ValueError, match="configured twice"):
        a_profile(pluginConfig=[{"name": "NodeName"}, {"name": "NodeName"}])


def test_settings_without_effect_are_named_in_one_note():
    body = {"parallelism": 16, "percentageOfNodesToScore": 50, "profiles": [{"percentageOfNodesToScore": 5}]}
    assert load(HEAD | body).notes == (
        "no effect here: parallelism, percentageOfNodesToScore, profiles[0].percentageOfNodesToScore",
    )


def test_arguments_of_rules_kept_elsewhere_are_accepted_and_noted():
    section = {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 20}}
    assert load(HEAD | {"profiles": [{"pluginConfig": [section]}]}).notes == (
        "no effect here: profiles[0].pluginConfig[DefaultPreemption].args",
    )


def test_preemption_can_be_disabled_at_its_own_point():
    assert "DefaultPreemption" in a_profile().enabled
    profile = a_profile(plugins={"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}})
    assert "DefaultPreemption" not in profile.enabled
    assert set(BUILT_IN) - profile.enabled == {"DefaultPreemption"}


def test_points_that_array_rules_do_not_have_are_noted():
    plugins = {"preScore": {"disabled": [{"name": "ImageLocality"}]}}
    config = load(HEAD | {"profiles": [{"plugins": plugins}]})
    assert "ImageLocality" in weights(config.profiles["default-scheduler"])
    assert config.notes == ("no effect here: profiles[0].plugins.preScore",)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"extenders": [{"urlPrefix": "http://x"}]}, "extenders are not supported"),
        ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds is 0"),
        ({"podInitialBackoffSeconds": "1"}, "must be a number"),
        ({"podInitialBackoffSeconds": 20}, "podMaxBackoffSeconds is 10.0, less than"),
        ({"profiles": [{}, {}]}, r"profiles\[1\].schedulerName: default-scheduler has a profile already"),
        ({"profiles": [{"plugin": {}}]}, r"profiles\[0\].plugin: unknown field"),
        ({"profiles": [{"plugins": {"sort": {}}}]}, "unknown field; known are"),
        ({"profiles": [{"plugins": {"score": {"enable": []}}}]}, "unknown field; known are disabled, enabled"),
        ({"surprise": 1}, "surprise: unknown field"),
        ({"kind": "Other"}, "expected apiVersion"),
        (
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": -1}]}}}]},
            "must be a whole number above 0",
        ),
        (
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 10**7}]}}}]},
            "add up to more than",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(body, fault):
    with pytest.raises(ValueError, match=fault):
        load(HEAD | body)


def test_sections_for_the_shell_are_handed_on():
    assert load(HEAD | {"leaderElection": {"leaderElect": False}}).engine == {"leaderElection": {"leaderElect": False}}


def test_backoffs_and_several_profiles_are_read():
    body = {"podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 30, "profiles": [{"schedulerName": n} for n in "ab"]}
    config = load(HEAD | body)
    assert (config.pod_initial_backoff, config.pod_max_backoff, list(config.profiles)) == (2, 30, ["a", "b"])
    assert repr(config.profiles["a"]) == "<Profile a>"


@pytest.mark.parametrize(
    ("args", "steps", "timeout"),
    [
        ({"budgetSteps": 40}, 40, 300),
        ({"bindTimeoutSeconds": 7.5}, 2500, 7.5),
        ({"budgetSteps": 1, "bindTimeoutSeconds": 60, "apiVersion": "muster.dev/v1", "kind": "MusterArgs"}, 1, 60),
        ({"budgetSteps": None}, 2500, 300),
        ({}, 2500, 300),
        (None, 2500, 300),
    ],
)
def test_budget_steps_and_the_bind_timeout_are_arguments_of_muster(args, steps, timeout):
    config = load(with_settings(args))

    assert (config.budget_steps, config.bind_timeout) == (steps, timeout)
    assert config.notes == ()


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "9", [9]])
def test_budget_steps_must_be_a_positive_integer(value):
    with pytest.raises(
        ValueError, match=r"^profiles\[0\].pluginConfig\[1\].args.budgetSteps: .* whole number above 0$"
    ):
        load(with_settings({"budgetSteps": value}))


@pytest.mark.parametrize("value", [0, -0.5, False, "60s", float("inf"), float("nan")])
def test_the_bind_timeout_must_be_a_positive_number(value):
    with pytest.raises(
        ValueError, match=r"^profiles\[0\].pluginConfig\[1\].args.bindTimeoutSeconds: .* number above 0$"
    ):
        load(with_settings({"bindTimeoutSeconds": value}))


@pytest.mark.parametrize(
    ("args", "enabled", "patience", "most"),
    [
        ({}, True, 300, 1),
        ({"reservations": None}, True, 300, 1),
        ({"reservations": {}}, True, 300, 1),
        ({"reservations": {"enabled": False}}, False, 300, 1),
        ({"reservations": {"patienceSeconds": 7.5, "max": 3}}, True, 7.5, 3),
    ],
)
def test_reservations_are_arguments_of_muster(args, enabled, patience, most):
    found = load(with_settings(args)).reservations

    assert (found.enabled, found.patience, found.most) == (enabled, patience, most)


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        (5, ": 5 is no object"),
        ({"patience": 5}, ".patience: unknown field; known are enabled, max, patienceSeconds"),
        ({"enabled": "yes"}, ".enabled: 'yes' is neither true nor false"),
        ({"patienceSeconds": 0}, ".patienceSeconds: 0 is no number above 0"),
        ({"patienceSeconds": "5m"}, ".patienceSeconds: '5m' is no number above 0"),
        ({"max": 0}, ".max: 0 is no whole number above 0"),
        ({"max": 1.5}, ".max: 1.5 is no whole number above 0"),
    ],
)
def test_a_wrong_setting_of_reservations_is_refused_by_its_path(section, fault):
    with pytest.raises(ValueError, match=re.escape(f"profiles[0].pluginConfig[1].args.reservations{fault}")):
        load(with_settings({"reservations": section}))


def test_profiles_that_disagree_on_reservations_are_refused():
    with pytest.raises(ValueError, match=r"args.reservations.max: 3 differs from 2 in profiles\[0\]"):
        load(with_settings({"reservations": {"max": 2}}, {"reservations": {"max": 3}}))


def test_unknown_settings_are_refused_with_the_known_ones():
    known = (
        "apiVersion, bindTimeoutSeconds, budgetSteps, expectedMembersTimeoutSeconds, kind, pluginFiles, reservations"
    )
    with pytest.raises(
        ValueError, match=rf"^profiles\[0\].pluginConfig\[1\].args.budget: unknown field; known are {known}$"
    ):
        load(with_settings({"budget": 5}))


def test_arguments_that_are_no_object_are_refused():
    with pytest.raises(ValueError, match=r"^profiles\[0\].pluginConfig\[1\].args: 5 is no object$"):
        load(with_settings(5))


def test_muster_is_configured_and_not_enabled():
    with pytest.raises(ValueError, match="unknown plugin 'Muster'"):
        a_profile(plugins={"multiPoint": {"enabled": [{"name": "Muster"}]}})
    with pytest.raises(ValueError, match="configured twice"):
        a_profile(pluginConfig=[{"name": "Muster"}, {"name": "Muster"}])
    with pytest.raises(ValueError, match=r"unknown plugin 'Odd'; known are .*Muster"):
        a_profile(pluginConfig=[{"name": "Odd"}])


def test_profiles_agree_on_the_settings_of_the_one_scheduler():
    config = load(with_settings({"budgetSteps": 9}, None, {"budgetSteps": 9, "bindTimeoutSeconds": 5}))

    assert (config.budget_steps, config.bind_timeout) == (9, 5)


def test_profiles_that_disagree_on_a_setting_are_refused_with_both_places():
    fault = (
        r"^profiles\[2\].pluginConfig\[1\].args.budgetSteps: 8 differs from 9 in "
        r"profiles\[0\].pluginConfig\[1\].args.budgetSteps"
    )
    with pytest.raises(ValueError, match=fault):
        load(with_settings({"budgetSteps": 9}, {"bindTimeoutSeconds": 5}, {"budgetSteps": 8}))


def test_a_scheduler_searches_as_many_steps_as_its_file_says():
    sizes = [7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3]

    def reason(**args: int) -> str:
        nodes = [a_node(f"n{i}", cpu=13) for i in range(5)]
        settings = HEAD | {"profiles": [{"pluginConfig": [{"name": "Muster", "args": args}]}]}
        world = a_world(nodes, config=settings)
        world.add(a_gang("g", len(sizes)), *[a_pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(sizes)]).run()
        return world.condition("PodGroup", "g").reason

    assert reason(budgetSteps=1) == "PlacementNotGuaranteed"
    assert reason(budgetSteps=2500) == "Scheduled"


def test_a_scheduler_gives_an_unfinished_gang_back_after_the_time_in_its_file():
    section = {"name": "Muster", "args": {"bindTimeoutSeconds": 20}}
    world = a_world([a_node("n0", cpu=3)], config=HEAD | {"profiles": [{"pluginConfig": [section]}]})
    world.refuse_binds = {"g-2"}
    world.add(a_gang("g", 3), *pods(3, "g", owner="job"))
    while not world.bound("g"):
        world.step()
    world.add(a_pod("squatter", node="n0")).run()
    assert world.bound("g").keys() == {"g-0", "g-1"}

    world.wait(19)
    assert world.evicted() == []
    world.wait(2)

    assert world.evicted() == ["g-0", "g-1"]
    note = next(event.note for event in world.events if event.reason == "BindTimeout")
    assert note.startswith("the minimum was not bound within 20 s")


def test_the_example_of_the_documentation_is_a_configuration():
    page = (Path(__file__).parents[3] / "docs" / "install.md").read_text()
    example = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])

    config = load(example)

    assert (config.budget_steps, config.bind_timeout) == (10_000, 120)


COMPLETE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 16
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
delayCacheUntilActive: false
enableProfiling: true
enableContentionProfiling: true
clientConnection:
  kubeconfig: ""
  acceptContentTypes: ""
  contentType: application/vnd.kubernetes.protobuf
  qps: 50
  burst: 100
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceLock: leases
  resourceName: kube-scheduler
  resourceNamespace: kube-system
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [%s]}
    preEnqueue: {enabled: [{name: SchedulingGates}, {name: GangScheduling}]}
    queueSort: {enabled: [{name: PrioritySort}]}
    preFilter: {enabled: [{name: NodeAffinity}, {name: NodeDeclaredFeatures}]}
    filter: {enabled: [{name: NodeName}]}
    postFilter: {enabled: [{name: DefaultPreemption}, {name: DynamicResources}]}
    preScore: {enabled: [{name: InterPodAffinity}]}
    score: {enabled: [{name: NodeResourcesFit, weight: 1}]}
    reserve: {enabled: [{name: VolumeBinding}]}
    permit: {enabled: [{name: GangScheduling}]}
    preBind: {enabled: [{name: VolumeBinding}, {name: DynamicResources}]}
    bind: {enabled: [{name: DefaultBinder}]}
    postBind: {}
    placementGenerate: {enabled: [{name: TopologyPlacementGenerator}]}
    placementScore: {enabled: [{name: PodGroupPodsCount, weight: 1}, {name: NodeResourcesFit, weight: 1}]}
    podGroupPostFilter: {enabled: [{name: DefaultPreemption}, {name: DynamicResources}]}
  pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100, kind: DefaultPreemptionArgs}
  - name: DynamicResources
    args: {filterTimeout: 10s, bindingTimeout: 10m, kind: DynamicResourcesArgs}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 1, ignorePreferredTermsOfExistingPods: false}
  - name: NodeAffinity
    args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeAffinityArgs}
  - name: NodeResourcesBalancedAllocation
    args: {resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/foo]
      ignoredResourceGroups: [example.org]
      scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}
  - name: PodTopologySpread
    args: {defaultingType: System}
  - name: VolumeBinding
    args: {bindTimeoutSeconds: 600}
"""


def test_a_complete_file_of_1_37_loads_as_it_stands():
    text = COMPLETE % ", ".join(f"{{name: {name}}}" for name in ALL_NAMES)
    config = load(yaml.safe_load(text))

    profile = config.profiles["default-scheduler"]
    assert weights(profile) == WEIGHTS
    assert set(ALL_NAMES) <= profile.enabled
    assert profile.preempting == {"postFilter", "podGroupPostFilter"}
    assert config.notes == (
        "no effect here: parallelism, percentageOfNodesToScore, enableContentionProfiling, delayCacheUntilActive, "
        "clientConnection.contentType, profiles[0].pluginConfig[DefaultPreemption].args, "
        "profiles[0].pluginConfig[DynamicResources].args",
    )


@pytest.mark.parametrize(
    ("plugins", "preempting", "gangs"),
    [
        ({"podGroupPostFilter": {"disabled": [{"name": "DefaultPreemption"}]}}, {"postFilter"}, True),
        ({"podGroupPostFilter": {"disabled": [{"name": "*"}]}}, {"postFilter"}, True),
        ({"postFilter": {"disabled": [{"name": "*"}]}}, {"podGroupPostFilter"}, True),
        (
            {"postFilter": {"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultPreemption"}]}},
            {"postFilter", "podGroupPostFilter"},
            True,
        ),
        ({"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}, set(), True),
        ({"queueSort": {"disabled": [{"name": "*"}]}}, {"postFilter", "podGroupPostFilter"}, True),
        ({"permit": {"disabled": [{"name": "GangScheduling"}]}}, {"postFilter", "podGroupPostFilter"}, False),
    ],
)
def test_a_point_switches_off_what_acts_there_and_nothing_else(plugins, preempting, gangs):
    profile = a_profile(plugins=plugins)
    assert profile.preempting == preempting
    assert ("GangScheduling" in profile.enabled) is gangs


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"leaderElection": {"leaseTime": "5s"}}, "leaderElection.leaseTime: unknown field; known are leaderElect,"),
        ({"clientConnection": {"qpz": 5}}, "clientConnection.qpz: unknown field"),
        (
            {"profiles": [{"plugins": {"podGroupPostFilter": {"enabled": [{"name": "Odd"}]}}}]},
            r"profiles\[0\].plugins.podGroupPostFilter.enabled: unknown plugin 'Odd'",
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "DynamicResources", "args": {"timeout": "1s"}}]}]},
            r"profiles\[0\].pluginConfig\[0\].args.timeout: unknown field; known are .*filterTimeout",
        ),
    ],
)
def test_unknown_names_are_refused_by_path(body, fault):
    with pytest.raises(ValueError, match=fault):
        load(HEAD | body)
