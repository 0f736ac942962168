"""Devices as amounts: rows count exactly what pods of several shapes can have together on a node."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from muster.api.types import Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.device_claims import Needs
from muster.scheduler.cache.device_rows import device_rows
from tests.build.devices import DRIVER, a_class, a_gpu_pod, a_request, a_slice, own_claim
from tests.build.objects import a_node

MODEL = f"device.attributes['{DRIVER}'].model"


def a_cluster(models: str) -> Cluster:
    """One node with a device of each of these models."""
    cluster = Cluster()
    cluster.change("Node", a_node("n0", cpu=64))
    devices = [{"name": f"d{at}", "attributes": {"model": {"string": model}}} for at, model in enumerate(models)]
    cluster.change("ResourceSlice", a_slice("n0", devices, nodeName="n0"))
    for some in ("a", "b", "c", "ab", "bc", "abc"):
        cluster.change("DeviceClass", a_class(some, f"'{some}'.contains({MODEL})"))
    return cluster


def needs_of(cluster: Cluster, name: str, **counts: int) -> Needs:
    pod: Pod = a_gpu_pod(name)
    requests = [a_request(f"r-{kind}", kind, count=count) for kind, count in counts.items()]
    cluster.change("ResourceClaim", own_claim(name, *requests))
    found = cluster.devices.claims.needs(pod)
    assert found is not None
    return found


def fits(cluster: Cluster, needs: list[Needs], counts: tuple[int, ...]) -> bool:
    """By searching the devices for all pods."""
    for each, count in zip(needs[:-1], counts[:-1], strict=True):
        cluster.devices.try_on(each, 0, count)
    found = cluster.device_room.fits(needs[-1], 0, counts[-1])
    for each, count in zip(needs[:-1], counts[:-1], strict=True):
        cluster.devices.try_on(each, 0, -count)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_rows_allow_exactly_what_a_search_finds(seed: int) -> None:
    random = Random(seed)
    cluster = a_cluster("".join(random.choice("abc") for _ in range(random.randint(1, 6))))
    kinds = random.sample(("a", "b", "c", "ab", "bc", "abc"), 3)
    needs = [needs_of(cluster, f"p{at}", **{kind: random.randint(1, 2)}) for at, kind in enumerate(kinds)]
    rows = device_rows(cluster.devices, needs, [0], cluster.size)
    assert rows is not None
    for counts in product(range(3), repeat=3):
        if counts[-1] and rows.requests.shape[1]:
            demanded = sum(count * rows.requests[at] for at, count in enumerate(counts))
            alone = all(cluster.device_room.fits(each, 0, count) for each, count in zip(needs, counts, strict=True))
            assert fits(cluster, needs, counts) == (alone and bool((demanded <= rows.free[:, 0]).all())), counts


def test_what_is_tried_on_the_node_is_taken_off() -> None:
    cluster = a_cluster("aab")
    one, any_of = needs_of(cluster, "one", a=1), needs_of(cluster, "any", abc=1)
    cluster.devices.try_on(one, 0, 1)
    rows = device_rows(cluster.devices, [one, any_of], [0], cluster.size)
    assert rows is not None
    assert sorted(rows.free[:, 0].tolist()) == [1, 2]


def test_shapes_that_want_different_devices_need_no_row() -> None:
    cluster = a_cluster("ab")
    rows = device_rows(cluster.devices, [needs_of(cluster, "p", a=1), needs_of(cluster, "q", b=1), None], [0], 1)
    assert rows is not None
    assert rows.free.shape == (0, 1)


def test_a_constraint_is_nothing_that_a_row_can_count() -> None:
    cluster = a_cluster("ab")
    plain = needs_of(cluster, "p", ab=1)
    constraint = {"matchAttribute": f"{DRIVER}/model"}
    cluster.change("ResourceClaim", own_claim("q", a_request("r", "ab", count=2), constraints=[constraint]))
    bound = cluster.devices.claims.needs(a_gpu_pod("q"))
    assert device_rows(cluster.devices, [plain, bound], [0], 1) is None
    assert device_rows(cluster.devices, [None, bound], [0], 1) is not None, "alone, its seats are known"


def test_what_only_two_sets_together_lack_is_a_row() -> None:
    cluster = a_cluster("b")
    cluster.change("Node", a_node("n1", cpu=64))
    others = [{"name": model, "attributes": {"model": {"string": model}}} for model in "ac"]
    cluster.change("ResourceSlice", a_slice("n1", others, nodeName="n1"))
    needs = [needs_of(cluster, "p", ab=1), needs_of(cluster, "q", bc=1)]
    rows = device_rows(cluster.devices, needs, [0, 1], cluster.size)
    assert rows is not None
    assert (rows.requests[0] <= rows.free[:, 0]).all()
    assert not (rows.requests.sum(axis=0) <= rows.free[:, 0]).all(), "there is one device for both"
