"""A feasibility model of trees of gangs for an integer-programming solver; run as a program of its own.

Reads a JSON list of worlds on standard input and writes a JSON list of booleans: nodes are [cpu, memory,
rack], gangs are [racked, [[cpu, memory, count], ...]], and every gang must be seated in full.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import highspy


def feasible(world: dict[str, Any]) -> bool:
    nodes, gangs = world["nodes"], world["gangs"]
    racks = sorted({rack for _, _, rack in nodes})
    model = highspy.Highs()
    model.silent()
    seats: dict[tuple[int, int, int], Any] = {}
    for g, (racked, kinds) in enumerate(gangs):
        chosen = {rack: model.addVariable(0, 1, type=highspy.HighsVarType.kInteger) for rack in racks} if racked else {}
        if chosen:
            model.addConstr(sum(chosen.values()) == 1)
        for k, (_, _, count) in enumerate(kinds):
            for n, (_, _, rack) in enumerate(nodes):
                seats[g, k, n] = model.addVariable(0, count, type=highspy.HighsVarType.kInteger)
                if chosen:
                    model.addConstr(seats[g, k, n] <= count * chosen[rack])
            model.addConstr(sum(seats[g, k, n] for n in range(len(nodes))) == count)
    for n, node in enumerate(nodes):
        for amount in range(2):
            used = [seats[g, k, n] * kind[amount] for g, (_, kinds) in enumerate(gangs) for k, kind in enumerate(kinds)]
            model.addConstr(sum(used) <= node[amount])
    model.run()
    return model.getModelStatus() == highspy.HighsModelStatus.kOptimal


if __name__ == "__main__":
    json.dump([feasible(world) for world in json.load(sys.stdin)], sys.stdout)
