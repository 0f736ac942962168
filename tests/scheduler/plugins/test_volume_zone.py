"""VolumeZone."""

from __future__ import annotations

import pytest

from muster.scheduler.plugins.volume_zone import VolumeZone
from tests.build.cluster import a_zoned_cluster, asked
from tests.build.objects import TOPOLOGY_ZONE, a_claim, a_node, a_volume, using


@pytest.mark.parametrize("key", [TOPOLOGY_ZONE, "failure-domain.beta.kubernetes.io/zone"])
def test_a_volume_of_a_zone_is_used_there_and_where_there_are_no_zones(key):
    cluster = a_zoned_cluster(a_node("old", labels={"failure-domain.beta.kubernetes.io/zone": "a"}))
    for obj in (a_claim(volume="pv"), a_volume(labels={key: "a__c"})):
        cluster.change(type(obj).__name__, obj)
    question = asked(cluster, using("data"), VolumeZone())
    assert question.nodes == ({"a", "none", "old"} if key == TOPOLOGY_ZONE else {"none", "old"})
    assert set(question.counts) == {"node(s) had no available volume zone"}
