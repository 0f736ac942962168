"""The worlds of the benchmarks, decided once and hashed: what they decide must stay when the code is rearranged."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from bench import cycle, decide, gangs, preemption, preemption_rule
from tools.decision_recorder import Entry, Recorder

RACK = gangs.RACK
SHAPES = ("none", "single", "all")


def record() -> dict[str, Entry]:
    """Every world under its name. About a minute."""
    results = _run(_choices(), trials=True)
    return results | _run({**_gangs(), **_cycle(), **_preemption()}, trials=False)


def _run(worlds: dict[str, Callable[[], Any]], *, trials: bool) -> dict[str, Entry]:
    recorder = Recorder()
    recorder.install(trials=trials)
    results: dict[str, Entry] = {}
    try:
        for name, world in worlds.items():
            with recorder.recording() as recording:
                world()
            assert not recording.empty, f"{name} decides nothing"
            results[name] = recording.result()
            gc.unfreeze()  # the benchmarks freeze what they build
            gc.collect()
    finally:
        recorder.uninstall()
    return results


def _choices() -> dict[str, Callable[[], Any]]:
    """`bench.decide`: the best node, pod after pod, on 5,000 nodes."""
    cluster = decide.a_cluster(5_000)
    various = [decide.web_pod(f"v{i}", cpu=f"{100 + i}m") for i in range(200)]
    return {
        "decide one shape": lambda: decide.rate(cluster, [decide.web_pod("one")], 1_000),
        "decide in one pass": lambda: decide.rate(cluster, [decide.web_pod("one")], 10_000, decide.in_one_pass),
        "decide 200 shapes": lambda: decide.rate(cluster, various, 1_000),
        "decide zone spreading": lambda: decide.rate(cluster, [decide.spread_pod()], 500),
        "decide anti-affinity": lambda: decide.rate(cluster, [decide.lonely_pod()], 500),
    }


def _gangs() -> dict[str, Callable[[], Any]]:
    return {
        "gangs 300 x 3": lambda: gangs.throughput(300, 3, None, 0),
        "gangs 1 x 5000": lambda: gangs.throughput(1, 5_000, None, 0),
        "gangs 300 x 3 in racks": lambda: gangs.throughput(300, 3, RACK, 0),
        "gangs 3 x 1000 in racks": lambda: gangs.throughput(3, 1_000, RACK, 0),
        "gangs tree": gangs.tree_of_racks,
        "gangs infeasible": lambda: gangs.infeasible(None),
        "gangs infeasible in racks": lambda: gangs.infeasible(RACK),
        "gangs mixed": lambda: list(gangs.found_rates()),
    }


def _cycle() -> dict[str, Callable[[], Any]]:
    return {
        "cycle 500 x 3": lambda: cycle.decide(500, 3),
        "cycle 1 x 5000": lambda: cycle.decide(1, 5_000),
        "cycle 500 x 3 in racks": lambda: cycle.decide(500, 3, RACK),
        "cycle 3 x 1000 in racks": lambda: cycle.decide(3, 1_000, RACK),
        "cycle single pods": lambda: list(cycle.intake(5_000)),
    }


def _preemption() -> dict[str, Callable[[], Any]]:
    def shape(build: Callable[..., preemption.Site], *arguments: Any) -> Callable[[], Any]:
        return lambda: build(*arguments).time_to_marks()

    worlds: dict[str, Callable[[], Any]] = {}
    for mode in ("single", "all"):
        worlds[f"preemption 1000 anywhere, victims of mode {mode}"] = lambda m=mode: preemption.large_gang(m, None)
        worlds[f"preemption 1000 in a rack, victims of mode {mode}"] = lambda m=mode: preemption.large_gang(m, RACK)
        worlds[f"preemption hopeless, victims of mode {mode}"] = lambda m=mode: preemption.hopeless(m)
    for groups, size in ((1, 100), (10, 10)):
        worlds[f"preemption basic {groups} x {size}"] = shape(preemption.basic, groups, size)
        worlds[f"preemption affinity {groups} x {size}"] = shape(preemption.affinity, groups, size)
    worlds["preemption ports 5 x 100"] = shape(preemption.pod_groups, 5, 100, 1, 100)
    worlds["preemption ports 50 x 10"] = shape(preemption.pod_groups, 50, 10, 10, 10)
    worlds |= {f"preemption disruption mode {mode}": shape(preemption.disruption_mode, mode) for mode in SHAPES}
    worlds["preemption random clusters"] = lambda: preemption_rule.tally(200)
    return worlds
