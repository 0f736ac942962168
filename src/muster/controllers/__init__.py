"""Upkeep: one module per controller, all over one set of shared watches.

`run_all(client)` runs them until cancelled; `ControllerManager` is the same with a `ready` event and an
`idle` flag for whoever starts and stops them.
"""

from muster.controllers.manager import CONTROLLERS, ControllerManager, run_all

__all__ = ["CONTROLLERS", "ControllerManager", "run_all"]
