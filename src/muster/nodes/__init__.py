"""Simulated kubelets: nodes that heartbeat, and pods that start, run, end and stop on them, without any container.

`SimulatedNodes(client, Inventory(count=100)).run()` simulates them until cancelled.
"""

from muster.nodes.inventory import Inventory
from muster.nodes.kubelets import Timing
from muster.nodes.simulation import SimulatedNodes

__all__ = ["Inventory", "SimulatedNodes", "Timing"]
