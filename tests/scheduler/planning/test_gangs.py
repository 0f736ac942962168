"""One gang at a time: counting, heterogeneous members, extras, bound members."""

from muster.scheduler.placement.verdict import CountingProof, Infeasible, Placed, WeightProof
from tests.build.objects import a_node, a_pod, apart, near
from tests.build.planning import Scene


def five_slots() -> Scene:
    return Scene().nodes(*(a_node(f"n{i}", cpu=1) for i in range(5)))


def test_a_gang_with_room_for_every_member_is_placed():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2) for i in range(3)))

    assert scene.plan(scene.uniform("trainers", 4)).seats_of("trainers") == 4


def test_a_gang_that_lacks_one_seat_is_refused_by_counting():
    scene = five_slots()

    verdict = scene.plan(scene.uniform("six", 6)).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, CountingProof)
    (short,) = verdict.proof.shortages
    assert (short.seats, short.needed) == (5, 6)
    assert ("cpu", 1000) in short.lacking


def test_members_beyond_the_minimum_take_what_is_left():
    scene = five_slots()

    result = scene.plan(scene.uniform("six", 6, min_count=4))

    assert result.seats_of("six") == 5


def test_the_minimum_comes_first_in_the_list_of_seats():
    scene = five_slots()
    gang = scene.gang("mix", a_pod("late", cpu=1), *(a_pod(f"m{i}", cpu=1) for i in range(3)), min_count=2)

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Placed)
    assert [seat.uid for seat in verdict.assignments[:2]] == ["uid-late", "uid-m0"]


def test_without_extras_only_the_minimum_is_seated():
    scene = five_slots()

    assert scene.plan(scene.uniform("six", 6, min_count=4), extras=False).seats_of("six") == 4


def test_a_large_member_that_comes_last_finds_its_node():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    gang = scene.gang("mix", *(a_pod(f"small{i}") for i in range(4)), a_pod("large", cpu=4))

    assert scene.plan(gang).seats_of("mix") == 5


def test_a_minimum_may_be_reached_with_other_members_than_the_first():
    scene = Scene().nodes(a_node("n0", cpu=2))
    gang = scene.gang("mix", a_pod("huge", cpu=8), a_pod("a", cpu=1), a_pod("b", cpu=1), min_count=2)

    assert set(scene.plan(gang).nodes_of("mix")) == {"a", "b"}


def test_shapes_that_fit_alone_but_not_together_are_refused_by_weighing():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    gang = scene.gang("mix", a_pod("a", cpu=3), a_pod("b", cpu=3), a_pod("c", cpu=2))

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, WeightProof)
    assert verdict.proof.required > verdict.proof.available


def test_only_an_uneven_split_of_two_resources_works():
    scene = Scene().nodes(a_node("n0", cpu=5, memory="5Gi"), a_node("n1", cpu=5, memory="5Gi"))
    thin = [a_pod(f"thin{i}", cpu=1, memory="2Gi") for i in range(2)]
    wide = [a_pod(f"wide{i}", cpu=2, memory="1Gi") for i in range(4)]

    assert scene.plan(scene.gang("mix", *wide, *thin)).seats_of("mix") == 6


def test_late_members_of_a_running_gang_need_no_companions():
    scene = five_slots()
    gang = scene.uniform("crew", 2, bound=4, min_count=4)

    assert scene.plan(gang).seats_of("crew") == 2


def test_a_running_gang_for_whose_late_members_there_is_no_room_is_infeasible():
    scene = five_slots()
    gang = scene.uniform("crew", 2, cpu=2, bound=4, min_count=4)

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Infeasible)
    assert verdict.proof.shortages[0].needed == 1


def test_a_gang_with_too_few_members_is_refused_before_anything_is_tried():
    scene = five_slots()

    verdict = scene.plan(scene.uniform("few", 2, min_count=4)).verdict

    assert isinstance(verdict, Infeasible)
    assert verdict.steps == 0
    assert verdict.proof.shortages[0].lacking == (("members", 2),)


def test_members_that_repel_each_other_get_a_node_each():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=8) for i in range(3)))
    rule = apart("kubernetes.io/hostname", job="apart")
    gang = scene.gang("apart", *(a_pod(f"z{i}", labels={"job": "apart"}, affinity=rule) for i in range(3)))

    assert len(set(scene.plan(gang).nodes_of("apart").values())) == 3


def test_members_that_repel_each_other_on_too_few_nodes_are_refused_by_counting():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=8) for i in range(2)))
    rule = apart("kubernetes.io/hostname", job="apart")
    gang = scene.gang("apart", *(a_pod(f"z{i}", labels={"job": "apart"}, affinity=rule) for i in range(3)))

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, CountingProof)


def test_workers_may_need_the_zone_of_a_launcher_that_comes_later():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2, zone=f"z{i // 2}") for i in range(4)))
    rule = near("example.com/zone", role="launcher")
    workers = [a_pod(f"w{i}", affinity=rule) for i in range(2)]

    result = scene.plan(scene.gang("mpi", *workers, a_pod("launcher", labels={"role": "launcher"})))

    assert result.seats_of("mpi") == 3
    assert len(result.values_of("mpi", "example.com/zone")) == 1


def test_the_launcher_goes_where_its_workers_have_room_too():
    scene = Scene().nodes(
        a_node("big", cpu=64, zone="z0"), a_node("a", cpu=2, zone="z1"), a_node("b", cpu=2, zone="z1")
    )
    scene.running(a_pod("busy", cpu=62, node="big"))
    rule = near("example.com/zone", role="launcher")
    gang = scene.gang(
        "mpi", *(a_pod(f"w{i}", affinity=rule) for i in range(3)), a_pod("launcher", labels={"role": "launcher"})
    )

    assert scene.plan(gang).values_of("mpi", "example.com/zone") == {"z1"}


def test_a_chain_of_dependencies_is_followed():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2, zone=f"z{i // 2}") for i in range(4)))
    gang = scene.gang(
        "chain",
        a_pod("c", labels={"tier": "c"}, affinity=near("example.com/zone", tier="b")),
        a_pod("b", labels={"tier": "b"}, affinity=near("example.com/zone", tier="a")),
        a_pod("a", labels={"tier": "a"}),
    )

    assert scene.plan(gang).seats_of("chain") == 3


def test_dependent_members_without_any_way_are_proven_infeasible():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=1, zone=f"z{i}") for i in range(3)))
    rule = near("example.com/zone", role="launcher")
    gang = scene.gang("mpi", a_pod("worker", affinity=rule), a_pod("launcher", labels={"role": "launcher"}))

    assert isinstance(scene.plan(gang).verdict, Infeasible)


def test_workers_that_no_zone_can_hold_beside_their_launcher_are_refuted_at_any_size():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=4, zone=f"z{i // 10}") for i in range(40)))
    rule = near("example.com/zone", role="launcher")
    workers = [a_pod(f"w{i}", affinity=rule) for i in range(40)]

    verdict = scene.plan(scene.gang("mpi", *workers, a_pod("launcher", labels={"role": "launcher"}))).verdict

    assert isinstance(verdict, Infeasible)
    assert scene.plan(scene.gang("fits", *workers[:39], a_pod("lead", labels={"role": "launcher"}))).placed


def test_company_that_runs_already_leaves_the_workers_free_to_choose():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=4, zone=f"z{i // 2}") for i in range(4)))
    scene.running(*(a_pod(f"lead{i}", cpu=1, node=f"n{2 * i}", labels={"role": "launcher"}) for i in range(2)))
    workers = [a_pod(f"w{i}", affinity=near("example.com/zone", role="launcher")) for i in range(14)]

    assert scene.plan(scene.gang("both", *workers)).seats_of("both") == 14


def test_host_ports_of_two_shapes_are_kept_apart():
    scene = Scene().nodes(a_node("n0", cpu=8), a_node("n1", cpu=8))
    port = [{"containerPort": 80, "hostPort": 80}]
    gang = scene.gang("web", a_pod("a", cpu=1, container={"ports": port}), a_pod("b", cpu=2, container={"ports": port}))

    assert len(set(scene.plan(gang).nodes_of("web").values())) == 2
    third = scene.gang("more", *(a_pod(f"p{i}", cpu=1, container={"ports": port}) for i in range(3)))
    assert isinstance(scene.plan(third).verdict, Infeasible)


def test_the_same_demand_gets_the_same_seats_whatever_the_order_of_nodes():
    nodes = [a_node(f"n{i}", cpu=4) for i in range(7)]
    seats = []
    for order in (nodes, nodes[::-1]):
        scene = Scene(seed=7).nodes(*order)
        gang = scene.gang("mix", *(a_pod(f"s{i}") for i in range(9)), *(a_pod(f"l{i}", cpu=3) for i in range(5)))
        seats.append(scene.plan(gang).nodes_of("mix"))
    assert seats[0] == seats[1]
