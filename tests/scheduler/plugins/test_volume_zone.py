"""VolumeZone."""

from __future__ import annotations

import pytest

from muster.scheduler.plugins.volume_zone import VolumeZone
from tests.scheduler.plugins.builders import (
    ZONE,
    a_claim,
    a_cluster,
    a_node,
    a_volume,
    asked,
    using,
)


def zones(*objects):
    return a_cluster(a_node("a", zone="a"), a_node("b", zone="b"), a_node("none"), *objects)


@pytest.mark.parametrize("key", [ZONE, "failure-domain.beta.kubernetes.io/zone"])
def test_a_volume_of_a_zone_is_used_there_and_where_there_are_no_zones(key):
    cluster = zones(a_node("old", labels={"failure-domain.beta.kubernetes.io/zone": "a"}))
    for obj in (a_claim(volume="pv"), a_volume(labels={key: "a__c"})):
        cluster.change(type(obj).__name__, obj)
    question = asked(cluster, using("data"), VolumeZone())
    assert question.nodes == ({"a", "none", "old"} if key == ZONE else {"none", "old"})
    assert set(question.counts) == {"node(s) had no available volume zone"}
