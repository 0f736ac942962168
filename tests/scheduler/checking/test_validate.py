"""`validate` finds every fault of a placement that is wrong by one detail."""

from __future__ import annotations

from muster.scheduler.checking.validate import validate
from muster.scheduler.placement.verdict import (
    Assignment,
    Placed,
)
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.runtime.profile import Profile
from tests.build.objects import RACK, a_node, a_pod
from tests.build.placements import fault, seated, two_nodes
from tests.build.planning import Scene


def test_a_sound_plan_has_no_fault():
    scene = two_nodes()
    gang = scene.uniform("g", 2)

    assert fault(scene, gang, g_0="n0", g_1="n1") == ""


def test_too_much_on_one_node_is_found():
    scene = two_nodes()
    assert "cpu" in fault(scene, scene.uniform("g", 3), g_0="n0", g_1="n0", g_2="n0")


def test_what_runs_already_counts_and_what_is_evicted_does_not():
    scene = two_nodes().running(a_pod("busy", cpu=2, node="n0"))
    gang = scene.uniform("g", 1)
    plan = seated(scene, gang, g_0="n0")

    assert "cpu" in (validate(plan, gang, scene.cluster) or "")
    assert validate(plan, gang, scene.cluster, evicted=frozenset({"pod-busy"})) is None


def test_seats_held_for_others_count():
    scene = two_nodes()
    gang = scene.uniform("g", 2)
    other = scene.uniform("other", 1).members[0].shape
    plan = seated(scene, gang, g_0="n0", g_1="n0")

    assert validate(plan, gang, scene.cluster) is None
    assert "cpu" in (validate(plan, gang, scene.cluster, nominated=[(other, 0)]) or "")


def test_the_number_of_pods_of_a_node_is_limited():
    scene = Scene().nodes(a_node("n0", cpu=8, pods=1))
    assert "pods" in fault(scene, scene.uniform("g", 2), g_0="n0", g_1="n0")


def test_a_minimum_that_does_not_hold_is_found_at_every_level():
    scene = two_nodes()
    left, right = scene.uniform("l", 1), scene.uniform("r", 2)
    assert "minimum of g" in fault(scene, scene.uniform("g", 2), g_0="n0")
    assert "minimum of root" in fault(scene, scene.composite("root", left, right), l_0="n0", r_0="n1")
    loose = scene.composite("root", left, right, min_groups=1)
    assert "r has seats" in fault(scene, loose, l_0="n0", r_0="n1")


def test_a_group_in_two_domains_is_found():
    scene = two_nodes()
    assert "more than one domain" in fault(scene, scene.uniform("g", 2, topology=RACK), g_0="n0", g_1="n1")
    pinned = scene.uniform("p", 1, bound=1, min_count=1, topology=RACK, domains=("r1",))
    assert "more than one domain" in fault(scene, pinned, p_0="n0")


def test_nobody_sits_twice_and_no_stranger_sits():
    scene = two_nodes()
    gang = scene.uniform("g", 1)
    seat = Assignment("uid-g-0", "n0", 0)
    assert "twice" in (validate(Placed((seat, seat), frozenset()), gang, scene.cluster) or "")
    assert "not a waiting member" in (
        validate(Placed((Assignment("x", "n0", 0),), frozenset()), gang, scene.cluster) or ""
    )
    assert "index" in (validate(Placed((Assignment("uid-g-0", "n0", 1),), frozenset()), gang, scene.cluster) or "")
    assert "nobody" in (validate(Placed((), frozenset()), gang, scene.cluster) or "")


def test_ports_of_running_and_nominated_pods_count():
    web = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    scene = two_nodes().running(a_pod("running", cpu=0, node="n0", **web))
    gang = scene.gang("g", a_pod("g-0", cpu=0, **web))
    other = scene.gang("o", a_pod("o-0", cpu=0, **web)).members[0].shape
    on_n0, on_n1 = seated(scene, gang, g_0="n0"), seated(scene, gang, g_0="n1")

    assert "port 80 of n0" in (validate(on_n0, gang, scene.cluster) or "")
    assert validate(on_n0, gang, scene.cluster, evicted=frozenset({"pod-running"})) is None
    assert validate(on_n1, gang, scene.cluster) is None
    assert "port 80 of n1" in (
        validate(on_n1, gang, scene.cluster, nominated=[(other, scene.cluster.index["n1"])]) or ""
    )


def test_a_group_that_is_said_to_be_satisfied_must_be():
    scene = two_nodes()
    gang, other = scene.uniform("g", 1), scene.uniform("o", 1)
    tree = scene.composite("root", gang, other, min_groups=1)
    placed = seated(scene, tree, g_0="n0")
    assert validate(placed, tree, scene.cluster) is None

    claimed = Placed(placed.assignments, frozenset({tree.key, other.key}))

    assert validate(claimed, tree, scene.cluster) == "o is said to hold and does not"


def test_a_constrained_group_uses_only_nodes_with_the_label():
    scene = two_nodes().nodes(a_node("loose", cpu=2))

    assert "without the label" in fault(scene, scene.uniform("g", 1, topology=RACK), g_0="loose")


def test_the_constraint_of_a_child_is_checked_inside_its_parent():
    scene = two_nodes()
    child = scene.uniform("c", 2, topology=RACK)

    assert "c lies in more than one domain" in fault(scene, scene.composite("root", child), c_0="n0", c_1="n1")


def test_resources_that_the_profile_ignores_are_not_compared():
    scene = Scene(profile=Profile("ignoring", [NodeResourcesFit({"ignoredResources": ["example.com/thing"]})]))
    scene.nodes(a_node("n0", cpu=2))
    gang = scene.gang("g", a_pod("g-0", cpu=1, requests={"example.com/thing": 3}))

    assert fault(scene, gang, g_0="n0") == ""
