"""ImageLocality."""

from __future__ import annotations

from muster.scheduler.plugins.image_locality import ImageLocality
from tests.build.cluster import a_cluster, asked
from tests.build.objects import a_node, a_pod

MIB = 1024 * 1024
APP = {"image": "app"}


def test_a_large_image_that_half_the_nodes_have_scores_by_its_share():
    cluster = a_cluster(a_node("has", images={"app:latest": 1000 * MIB}), a_node("has not"))
    scores = asked(cluster, a_pod(container=APP), ImageLocality()).scores()
    assert scores == {"has": 100 * (500 - 23) // (1000 - 23), "has not": 0}


def test_images_of_all_containers_and_image_volumes_count():
    cluster = a_cluster(a_node("n0", images={"app": 400 * MIB, "init:v1": 400 * MIB, "data:v2": 400 * MIB}))
    volumes = [{"name": "d", "image": {"reference": "data:v2"}}]
    pod = a_pod(container=APP, initContainers=[{"image": "init:v1"}], volumes=volumes)
    assert asked(cluster, pod, ImageLocality()).scores() == {"n0": 100 * (1200 - 23) // (3000 - 23)}


def test_small_images_do_not_count():
    cluster = a_cluster(a_node("n0", images={"app": 20 * MIB}))
    assert asked(cluster, a_pod(container=APP), ImageLocality()).scores() == {"n0": 0}


def test_an_image_that_arrives_on_a_node_is_seen():
    cluster = a_cluster(a_node("n0"))
    question = asked(cluster, a_pod(container=APP), ImageLocality())
    assert question.scores() == {"n0": 0}
    cluster.change("Node", a_node("n0", images={"app": 2000 * MIB}))
    assert question.scores() == {"n0": 100}
