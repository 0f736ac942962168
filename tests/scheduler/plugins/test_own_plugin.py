"""The example in the documentation is a plugin that works as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import yaml

from muster.scheduler.runtime.config import load
from tests.build.cluster import Asked, a_cluster, evaluator_of
from tests.build.objects import a_node, a_pod

PAGE = (Path(__file__).parents[3] / "docs" / "plugins.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def the_example() -> type:
    found: dict[str, object] = {}
    exec(blocks("python")[0], found)  # noqa: S102
    return found["QuietNodes"]  # type: ignore[return-value]


def the_profile():
    config = load(yaml.safe_load(blocks("yaml")[-1]), extra=[the_example()])
    return config.profiles["default-scheduler"]


def busy(count: int):
    return [a_pod(f"p{i}", cpu="1m", memory="1Mi", node="busy") for i in range(count)]


def test_the_example_is_fifteen_lines():
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 15


def test_the_example_refuses_busy_nodes_in_its_own_words():
    cluster = a_cluster(a_node("busy"), *busy(51))
    profile = the_profile()
    assert Asked(cluster, a_pod(memory="1Gi"), profile).nodes == {"busy"}
    question = Asked(cluster, a_pod(memory="1Gi", labels={"quiet": ""}), profile)
    assert question.nodes == set()
    assert question.text == "0/1 nodes are available: 1 node(s) were too busy."


def test_the_example_scores_with_the_weight_of_the_profile():
    profile = the_profile()
    assert {plugin.name: weight for plugin, weight in profile.scorers}["QuietNodes"] == 5
    cluster = a_cluster(a_node("busy"), a_node("idle"), *busy(20))
    assert Asked(cluster, a_pod(memory="1Gi"), profile).best == "idle"


def test_placing_many_with_the_example_is_the_same_as_one_by_one():
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    shape = evaluator_of(cluster).shape(a_pod(cpu="1m", memory="1Mi", labels={"quiet": ""}), the_profile())
    with evaluator_of(cluster).trial() as trial:
        many = trial.place_many(shape, 200)
        assert np.bincount(many).tolist() == [51, 51]
