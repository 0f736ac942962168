"""NodePorts."""

from __future__ import annotations

import pytest

from muster.scheduler.plugins.node_ports import NodePorts
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.objects import a_node, a_pod


def with_port(name, number=80, ip="", protocol="", **fields):
    port = {"containerPort": 8080, "hostPort": number, "hostIP": ip, "protocol": protocol}
    return a_pod(name, container={"ports": [port]}, **fields)


@pytest.mark.parametrize(
    ("held", "wanted", "clash"),
    [
        ({}, {}, True),
        ({"number": 81}, {}, False),
        ({"protocol": "UDP"}, {"protocol": "TCP"}, False),
        ({"protocol": ""}, {"protocol": "TCP"}, True),
        ({"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}, False),
        ({"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}, True),
        ({"ip": "10.0.0.1"}, {"ip": "0.0.0.0"}, True),
        ({"ip": ""}, {"ip": "10.0.0.2"}, True),
    ],
)
def test_ports_clash_when_protocol_number_and_address_overlap(held, wanted, clash):
    cluster = a_cluster(a_node(), with_port("holder", node="n0", **held))
    question = asked(cluster, with_port("pod", **wanted), NodePorts())
    assert question.nodes == (set() if clash else {"n0"})
    if clash:
        text = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
        assert question.text == text
        assert question.final == set()


def test_a_pod_with_a_port_has_one_seat_a_node_and_is_not_independent():
    cluster = a_cluster(a_node("n0"), a_node("n1"), with_port("holder", node="n1"))
    question = asked(cluster, with_port("pod"), NodePorts())
    assert question.trial.seats(question.shape)[cluster.index["n0"]] == 1
    assert question.trial.seats(question.shape)[cluster.index["n1"]] == 0
    assert not evaluator_of(question.cluster).independent(question.shape)


def test_a_port_is_free_again_when_its_holder_is_gone():
    cluster = a_cluster(a_node(), with_port("holder", node="n0"))
    question = asked(cluster, with_port("pod"), NodePorts())
    assert question.nodes == set()
    cluster.remove("Pod", "ns", "holder")
    assert question.nodes == {"n0"}


def test_a_pod_on_the_host_network_holds_its_container_ports():
    cluster = a_cluster(
        a_node(), a_pod("host", node="n0", hostNetwork=True, container={"ports": [{"containerPort": 80}]})
    )
    assert asked(cluster, with_port("pod"), NodePorts()).nodes == set()
