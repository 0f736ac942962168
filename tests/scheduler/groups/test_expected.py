"""Which members of a group are expected: how many, of which template and ordinal, and what pods they will be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.scheduler.groups.expectation import NOTHING_EXPECTED, expectation_of
from muster.scheduler.groups.expected import ExpectedMember, expected_members, expected_pod, holds_no_claims
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Group, group_name
from muster.scheduler.interface.keys import EntityKey
from tests.build.objects import a_composite, a_gang, a_node, a_pod, expects, expects_all, pods
from tests.build.scheduler import a_world

KEY = EntityKey("PodGroup", "ns", "g")


def the_group(minimum: int, annotation: str, *members: Any) -> Group:
    forest = Forest()
    forest.put_group(a_gang("g", minimum, expects=annotation))
    for pod in members:
        forest.put_member(pod, KEY if group_name(pod) else None)
    return forest.groups[KEY]


def ordinals(group: Group) -> list[int]:
    return [member.ordinal for member in expected_members(group)]


# --- counting --------------------------------------------------------------------------------------


def test_a_group_without_the_annotation_expects_nobody():
    assert expectation_of(a_gang("g", 3)) == NOTHING_EXPECTED
    assert expectation_of(a_composite("t", 2)) == NOTHING_EXPECTED


def test_what_exists_counts_among_the_expected_and_the_quorum_is_there():
    group = the_group(4, expects(4), *pods(1, "g"))
    assert (group.expecting, group.admissible, group.placeable) == (3, True, True)
    assert ordinals(group) == [1, 2, 3]


@pytest.mark.parametrize(("minimum", "total", "existing", "expecting"), [(4, 9, 1, 3), (4, 3, 1, 2), (2, 4, 3, 0)])
def test_only_what_the_minimum_lacks_is_expected_and_no_more_than_will_come(
    minimum: int, total: int, existing: int, expecting: int
):
    group = the_group(minimum, expects(total), *pods(existing, "g"))
    assert group.expecting == expecting == len(ordinals(group))
    assert group.admissible == (existing + expecting >= minimum)


def test_without_a_pod_nothing_is_to_be_placed_yet():
    group = the_group(2, expects(2))
    assert (group.admissible, group.placeable, group.expecting) == (True, False, 2)


def test_bound_members_count_and_leaving_ones_are_expected_again():
    group = the_group(3, expects(3), a_pod("a", "g", node="n0"), a_pod("b", "g", node="n0", deleting=True))
    assert (group.bound, group.expecting) == (1, 2)


def test_a_gated_member_is_as_good_as_missing():
    group = the_group(2, expects(2), a_pod("a", "g"), a_pod("b", "g", gates=["x"]))
    assert group.expecting == 1


def test_the_tree_above_knows_how_many_are_expected():
    forest = Forest()
    forest.put_group(a_composite("t", 2))
    forest.put_group(a_gang("g", 2, parent="t", expects=expects(2)))
    top = forest.groups[EntityKey("CompositePodGroup", "ns", "t")]
    assert top.counts.expecting == 2
    forest.put_member(a_pod("a", "g"), KEY)
    assert top.counts.expecting == 1
    forest.put_group(a_gang("g", 2, parent="t"))
    assert top.counts.expecting == 0


# --- templates -------------------------------------------------------------------------------------

LEADER, WORKER = a_pod("leader", cpu=4, labels={"role": "leader"}), a_pod("worker", cpu=1, labels={"role": "worker"})
BOTH = expects_all((1, LEADER, "created"), (2, WORKER, "ready"))


@pytest.mark.parametrize(
    ("existing", "left"),
    [
        ([a_pod("x", "g", cpu=4, labels={"role": "leader", "more": "1"})], [1, 2]),
        ([a_pod("x", "g", cpu=1, labels={"role": "worker"})], [0, 2]),
        ([a_pod("x", "g", cpu=1)], [0, 2]),  # by its requests
        ([a_pod("x", "g", cpu=9)], [1, 2]),  # like none: the first that is left
        ([a_pod("x", "g", cpu=1), a_pod("y", "g", cpu=1), a_pod("z", "g", cpu=1)], []),
    ],
)
def test_a_member_is_of_the_template_that_it_agrees_with_best(existing: list[Any], left: list[int]):
    assert ordinals(the_group(3, BOTH, *existing)) == left


def test_the_pod_of_a_member_is_that_of_its_template_in_its_group():
    (first, *_) = expected_members(the_group(3, BOTH))
    pod = expected_pod(first, "muster", 7)
    assert (pod.metadata.uid, pod.metadata.namespace, pod.metadata.labels) == ("ns/g/0", "ns", {"role": "leader"})
    assert (pod.spec.scheduler_name, pod.spec.priority, pod.spec.node_name) == ("muster", 7, "")
    assert group_name(pod) == "g"


def test_claims_of_each_pod_are_left_out_and_gates_too():
    claims = [{"name": "own", "resourceClaimTemplateName": "t"}, {"name": "shared", "resourceClaimName": "c"}]
    like = a_pod(gates=["x"], resourceClaims=claims, volumes=[{"name": "v", "ephemeral": {}}, {"name": "w"}])
    group = the_group(1, expects(1, like))
    pod = expected_pod(next(expected_members(group)), "muster", 0)
    assert [claim.name for claim in pod.spec.resource_claims or ()] == ["shared"]
    assert [volume.name for volume in pod.spec.volumes or ()] == ["w"]
    assert pod.spec.scheduling_gates is None
    assert holds_no_claims(group)
    assert not holds_no_claims(the_group(1, expects(1)))


def test_a_limit_is_a_request_where_there_is_none():
    container = {"resources": {"limits": {"cpu": "3", "memory": "1Gi"}, "requests": {"cpu": "2"}}}
    member = ExpectedMember(
        KEY, 0, expectation_of(a_gang("g", 1, expects=expects(1, a_pod(container=container)))).templates[0]
    )
    (found,) = expected_pod(member, "muster", 0).spec.containers or ()
    assert found.resources is not None
    assert found.resources.requests == {"cpu": "2", "memory": "1Gi"}


# --- whatever the annotation says ------------------------------------------------------------------

some = st.fixed_dictionaries
WORDS = st.text(max_size=3)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "x.y/z", "pods", ""]),
    st.sampled_from(["0", "1", "100m", "1e99", "9Ei", 3, -1, "x", ""]),
    max_size=2,
)
CONTAINERS = st.lists(
    some(
        {},
        optional={
            "name": WORDS,
            "resources": some({"requests": AMOUNTS, "limits": AMOUNTS}),
            "ports": st.lists(some({"hostPort": st.integers(-1, 99999)}), max_size=2),
        },
    ),
    max_size=2,
)
EXPRESSIONS = st.lists(some({"key": WORDS, "operator": st.sampled_from(["In", "Gt", "?"])}), max_size=2)
TERMS = st.lists(
    some(
        {
            "topologyKey": st.sampled_from(["kubernetes.io/hostname", "", "x"]),
            "labelSelector": some({"matchExpressions": EXPRESSIONS}),
        }
    ),
    max_size=2,
)
SPREADING = st.lists(
    some(
        {
            "maxSkew": st.integers(0, 2),
            "topologyKey": WORDS,
            "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway", "x"]),
        }
    ),
    max_size=2,
)
SPECS = some(
    {},
    optional={
        "containers": CONTAINERS,
        "initContainers": CONTAINERS,
        "nodeSelector": st.dictionaries(WORDS, WORDS, max_size=2),
        "tolerations": st.lists(some({"operator": WORDS}), max_size=2),
        "affinity": some({"podAntiAffinity": some({"requiredDuringSchedulingIgnoredDuringExecution": TERMS})}),
        "topologySpreadConstraints": SPREADING,
        "overhead": AMOUNTS,
        "volumes": st.lists(some({"name": WORDS, "persistentVolumeClaim": some({"claimName": WORDS})}), max_size=1),
    },
)


@given(spec=SPECS)
def test_no_annotation_stops_the_scheduler(spec: dict[str, Any]):
    text = json.dumps([{"count": 2, "after": "ready", "podTemplate": {"spec": spec}}])
    world = a_world([a_node("n0"), a_node("n1")])
    world.add(a_gang("g", 2, expects=text), a_pod("g-0", "g"), a_pod("other")).run()
    assert world.scheduler.state.forest.groups[KEY].expectation.total in (0, 2)
