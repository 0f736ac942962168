"""`check_proof` accepts true proofs and refutes false ones of every kind."""

from __future__ import annotations

from muster.scheduler.checking.check_proof import check_proof
from muster.scheduler.placement.verdict import (
    CountingProof,
    ExhaustionProof,
    Infeasible,
    WeightProof,
)
from tests.build.objects import a_pod
from tests.build.placements import two_nodes


def test_a_false_proof_of_any_kind_is_refuted():
    scene = two_nodes()
    gang = scene.gang("g", a_pod("g-0", cpu=1), a_pod("g-1", cpu=2))
    shapes = [member.shape.id for member in gang.members]

    counting = Infeasible(CountingProof(gang.key, ()))
    weighing = Infeasible(WeightProof(gang.key, ((shapes[0], 1), (shapes[1], 2)), 5, 4))
    search = Infeasible(ExhaustionProof(gang.key, 1, 2, 10))

    assert "does not rule out" in (check_proof(counting, gang, scene.cluster) or "")
    assert "needed" in (check_proof(weighing, gang, scene.cluster) or "")
    assert check_proof(search, gang, scene.cluster) == "a placement exists"
