"""The controllers of the embedded control plane: one module per controller, over one set of shared informers.

`run_all(client)` runs them until cancelled. `ControllerManager` does the same and also has a `ready` event and an
`idle` flag for the caller.
"""

from muster.controllers.manager import CONTROLLERS, ControllerManager, run_all

__all__ = ["CONTROLLERS", "ControllerManager", "run_all"]
