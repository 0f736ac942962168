"""What the claims of a pod ask for."""

from __future__ import annotations

import msgspec

from muster.scheduler.cache.device_claims import DeviceClaims, Needs, claim_keys
from tests.build.devices import a_class, a_gpu_pod, own_claim, shared_claim, using_claim
from tests.build.objects import a_pod


def known(*claims: object) -> DeviceClaims:
    found = DeviceClaims()
    found.classes["gpu"] = a_class("gpu")
    for claim in claims:
        found.put((claim.metadata.namespace, claim.metadata.name), claim)  # type: ignore[attr-defined]
    return found


def test_pods_with_claims_of_their_own_from_equal_specs_need_the_same() -> None:
    claims = known(own_claim("a"), own_claim("b"))
    assert claims.needs(a_gpu_pod("a")) == claims.needs(a_gpu_pod("b"))
    assert claims.needs(a_pod("c")) is None


def test_a_claim_that_others_may_use_is_needed_by_name() -> None:
    assert known(shared_claim("x")).needs(using_claim("p", "x")) == Needs((), (("ns", "x"),))


def test_a_claim_of_another_pod_is_refused() -> None:
    wrong = msgspec.structs.replace(own_claim("b").metadata, name="a-gpu")
    needs = known(msgspec.structs.replace(own_claim("b"), metadata=wrong)).needs(a_gpu_pod("a"))
    assert needs is not None
    assert needs.fault == "ResourceClaim ns/a-gpu was not created for Pod ns/a (Pod is not owner)"


def test_a_claim_on_its_way_out_is_refused() -> None:
    leaving = msgspec.structs.replace(shared_claim("x").metadata, deletion_timestamp="2030-01-01T00:00:00Z")
    needs = known(msgspec.structs.replace(shared_claim("x"), metadata=leaving)).needs(using_claim("p", "x"))
    assert needs == Needs(fault='resourceclaim "x" is being deleted')


def test_users_and_holders_are_remembered_and_forgotten() -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    claims = known(shared_claim("x", allocation={"devices": {"results": [result]}}))
    pod = using_claim("p", "x")
    claims.set_user(pod)
    assert claims.users == {("ns", "x"): {"pod-p"}}
    assert list(claims.holders.values()) == [{("ns", "x")}]
    claims.remove_user("pod-p")
    claims.put(("ns", "x"), None)
    assert claims.users == {}
    assert claims.holders == {}


def test_an_entry_stands_for_the_claim_that_was_made_for_it() -> None:
    ((entry, key),) = claim_keys(a_gpu_pod("a"))
    assert (entry.name, key) == ("gpu", ("ns", "a-gpu"))
    ((_, missing),) = claim_keys(a_pod("a", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}]))
    assert missing is None
