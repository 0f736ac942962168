"""From a root and a snapshot to a verdict: gangs, trees, topology, exact search, validation.

`plan` looks for seats, `validate` and `check_proof` judge what it says without sharing code with it.
"""

from muster.scheduler.planning.planner import DEFAULT_STEPS, plan
from muster.scheduler.planning.proofcheck import check_proof
from muster.scheduler.planning.validate import validate

__all__ = ["DEFAULT_STEPS", "check_proof", "plan", "validate"]
