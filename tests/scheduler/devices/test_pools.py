"""Which devices of which pools a node can use."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api.devices import DeviceTaintRule
from muster.scheduler.devices.device import DeviceId
from muster.scheduler.devices.pools import INVALID, UPDATING, Pools
from tests.build.devices import DRIVER, a_node, a_slice

GPU = {"name": "gpu"}


def of_pool(name: str, generation: int = 1, slices: int = 1) -> dict[str, Any]:
    return {"name": name, "generation": generation, "resourceSliceCount": slices}


def selecting(**labels: str) -> dict[str, Any]:
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


def test_a_newer_incomplete_generation_hides_the_older_one() -> None:
    pools = Pools()
    pools.set_slice(a_slice("old", [GPU], pool=of_pool("p")))
    assert [device.id.name for device in pools.at(a_node())[0].devices] == ["gpu"]
    pools.set_slice(a_slice("new", [{"name": "other"}], pool=of_pool("p", 2, 2)))
    (pool,) = pools.at(a_node())
    assert (pool.fault, pool.detail) == (UPDATING, "1 of 2 slices")
    pools.set_slice(a_slice("new-2", [{"name": "third"}], pool=of_pool("p", 2, 2)))
    (pool,) = pools.at(a_node())
    assert not pool.fault
    assert [device.id.name for device in pool.devices] == ["other", "third"]


def test_a_pool_of_several_nodes_is_complete_if_the_cluster_has_all_its_slices() -> None:
    pools = Pools()
    pools.set_slice(a_slice("one", [GPU], pool=of_pool("p", 1, 2), nodeName="n1"))
    assert pools.at(a_node("n1"))[0].fault == UPDATING
    pools.set_slice(a_slice("two", [{"name": "far"}], pool=of_pool("p", 1, 2), nodeName="n2"))
    (pool,) = pools.at(a_node("n1"))
    assert not pool.fault
    assert [device.id.name for device in pool.devices] == ["gpu"]


def test_a_pool_whose_newer_generation_is_elsewhere_is_gone_for_the_node() -> None:
    pools = Pools()
    pools.set_slice(a_slice("one", [GPU], pool=of_pool("p", 1, 2), nodeName="n1"))
    pools.set_slice(a_slice("two", [GPU], pool=of_pool("p", 2, 2), nodeName="n2"))
    assert pools.at(a_node("n1")) == ()


def test_slices_reach_nodes_by_name_selector_for_all_and_device_by_device() -> None:
    pools = Pools()
    pools.set_slice(a_slice("rack", [GPU], nodeSelector=selecting(rack="r1")))
    pools.set_slice(a_slice("everywhere", [GPU], allNodes=True))
    apart = [{"name": "d1", "nodeName": "n1"}, {"name": "d2", "nodeSelector": selecting(rack="r2")}]
    pools.set_slice(a_slice("apart", apart, perDeviceNodeSelection=True))
    pools.set_slice(a_slice("local", [GPU], nodeName="n1"))

    def at(name: str, rack: str) -> list[tuple[str, list[str]]]:
        found = pools.at(a_node(name, rack=rack))
        return [(pool.name, [device.id.name for device in pool.devices]) for pool in found]

    assert at("n1", "r1") == [("apart", ["d1"]), ("everywhere", ["gpu"]), ("local", ["gpu"]), ("rack", ["gpu"])]
    assert at("n2", "r2") == [("apart", ["d2"]), ("everywhere", ["gpu"])]
    assert at("n3", "r3") == [("everywhere", ["gpu"])]


SET = [{"name": "set", "counters": {"slices": {"value": "4"}}}]


@pytest.mark.parametrize(
    ("slices", "detail"),
    [
        ([a_slice("a", [GPU, GPU])], "device gpu is listed twice"),
        (
            [
                a_slice("a", [GPU], pool=of_pool("p", 1, 3)),
                a_slice("b", [], pool=of_pool("p", 1, 3), sharedCounters=SET),
                a_slice("c", [], pool=of_pool("p", 1, 3), sharedCounters=SET),
            ],
            "counter set set is declared twice",
        ),
        (
            [
                a_slice("a", [GPU], pool=of_pool("p", 1, 3)),
                a_slice("b", [], pool=of_pool("p", 1, 3), sharedCounters=SET),
                a_slice(
                    "far",
                    [GPU | {"consumesCounters": [{"counterSet": "set", "counters": {"other": {"value": "1"}}}]}],
                    pool=of_pool("p", 1, 3),
                    nodeName="elsewhere",
                ),
            ],
            "device gpu consumes an undeclared counter set/other",
        ),
    ],
)
def test_a_pool_that_contradicts_itself_is_invalid(slices: list[Any], detail: str) -> None:
    pools = Pools()
    for slice_ in slices:
        pools.set_slice(slice_)
    (pool,) = pools.at(a_node())
    assert (pool.fault, pool.detail) == (INVALID, detail)


def test_equal_devices_have_equal_numbers_and_others_do_not() -> None:
    pools = Pools()
    same = {"attributes": {"model": {"string": "a"}}}
    written_out = {"attributes": {f"{DRIVER}/model": {"string": "a"}, "model": {"string": "ignored"}}}
    tainted = same | {"taints": [{"key": "bad", "effect": "NoSchedule"}]}
    devices = [{"name": name, **body} for name, body in zip("abcd", (same, same, written_out, tainted), strict=True)]
    pools.set_slice(a_slice("s", [*devices, {"name": "e", "attributes": {"model": {"version": "1.0.0"}}}]))
    a, b, c, d, e = pools.at(a_node())[0].devices
    assert a.content == b.content == c.content == d.content
    assert a.twin == b.twin == c.twin
    assert d.twin != a.twin
    assert e.content != a.content


def test_taint_rules_taint_the_devices_they_select() -> None:
    pools = Pools()
    pools.set_slice(a_slice("s", [{"name": "a"}, {"name": "b"}]))

    def rule(selector: dict[str, str] | None) -> DeviceTaintRule:
        spec = {"deviceSelector": selector, "taint": {"key": "bad", "effect": "NoExecute"}}
        return msgspec.convert({"metadata": {"name": "rule"}, "spec": spec}, DeviceTaintRule)

    def tainted() -> list[str]:
        return [device.id.name for device in pools.at(a_node())[0].devices if device.taints]

    assert pools.set_rule(rule({"driver": DRIVER, "device": "b"}))
    assert tainted() == ["b"]
    assert not pools.set_rule(rule({"driver": DRIVER, "device": "b"}))
    assert pools.set_rule(rule({"pool": "elsewhere"}))
    assert tainted() == []
    assert pools.set_rule(rule({}))
    assert tainted() == ["a", "b"]
    assert pools.set_rule(rule(None))
    assert tainted() == []
    assert pools.remove_rule("rule")
    assert not pools.remove_rule("rule")


def test_a_device_is_known_while_a_slice_lists_it() -> None:
    pools = Pools()
    gpu = DeviceId(DRIVER, "s", "gpu")
    slice_ = a_slice("s", [GPU])
    assert pools.set_slice(slice_)
    assert not pools.set_slice(slice_)
    assert pools.device(gpu) is not None
    assert pools.remove_slice("s") == slice_
    assert pools.remove_slice("s") is None
    assert pools.device(gpu) is None
    assert pools.at(a_node()) == ()
