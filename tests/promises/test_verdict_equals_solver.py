"""The planner against an integer-programming solver, on worlds too large for brute force."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.placement.verdict import Infeasible, Placed, Undecided
from tests.build.objects import RACK, a_node, a_pod
from tests.build.planning import Scene

pytest.importorskip("highspy", reason="the solver is a development dependency")


def a_world(rng: random.Random) -> tuple[Scene, GroupRequest, dict[str, Any]]:
    """Gangs that fill 75 to 100 % of up to 24 nodes, half of them bound to one rack each."""
    scene, nodes = Scene(), []
    for rack in range(rng.randint(1, 4)):
        for index in range(rng.randint(2, 6)):
            cpu = rng.choice((4, 8, 8, 16))
            nodes.append([cpu, cpu * 2, f"r{rack}"])
            scene.nodes(a_node(f"n{rack}-{index}", cpu=cpu, memory=f"{cpu * 2}Gi", rack=f"r{rack}"))
    kinds = [(rng.randint(1, 6), rng.randint(1, 12)) for _ in range(3)]
    fill, racked = rng.uniform(0.75, 1.0), rng.random() < 0.7
    limit, used, gangs, groups = fill * sum(cpu for cpu, _, _ in nodes), 0, [], []
    while used < limit and len(groups) < 9:
        picked = [(kind, rng.randint(1, 4)) for kind in rng.sample(kinds, rng.randint(1, 3))]
        inside = racked and rng.random() < 0.7
        used += sum(cpu * count for (cpu, _), count in picked)
        gangs.append([inside, [[cpu, memory, count] for (cpu, memory), count in picked]])
        name = f"g{len(groups)}"
        pods = [
            a_pod(f"{name}-{k}-{i}", cpu=cpu, memory=f"{memory}Gi")
            for k, ((cpu, memory), count) in enumerate(picked)
            for i in range(count)
        ]
        groups.append(scene.gang(name, *pods, topology=RACK if inside else ""))
    return scene, scene.composite("root", *groups), {"nodes": nodes, "gangs": gangs}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_the_verdict_equals_the_solvers(count: int) -> None:
    rng = random.Random(17)
    worlds = [a_world(rng) for _ in range(count)]
    verdicts = [scene.plan(demand).verdict for scene, demand, _ in worlds]

    program = Path(__file__).with_name("planning_milp.py")
    question = json.dumps([raw for _, _, raw in worlds])
    answer = subprocess.run([sys.executable, str(program)], input=question, capture_output=True, text=True, check=True)
    truth = json.loads(answer.stdout)

    for verdict, exists in zip(verdicts, truth, strict=True):
        assert not (isinstance(verdict, Placed) and not exists)
        assert not (isinstance(verdict, Infeasible) and exists)
    assert sum(isinstance(verdict, Undecided) for verdict in verdicts) <= count // 20
    assert any(isinstance(v, Infeasible) for v in verdicts)
    assert any(isinstance(v, Placed) for v in verdicts)
