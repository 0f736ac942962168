"""Who must leave so that a root can start: units of eviction, their toll, and the cheapest choice.

`units` says what can be evicted at all, `Toll` what an eviction costs, `choose` finds seats and victims
together. Everything here is a what-if: nobody is evicted until the cycle has validated the plan.
"""

from muster.scheduler.preemption.census import Census
from muster.scheduler.preemption.choose import choose
from muster.scheduler.preemption.plan import Eviction, NoHelp
from muster.scheduler.preemption.toll import Toll
from muster.scheduler.preemption.units import Quorum, Unit, quorums, units

__all__ = ["Census", "Eviction", "NoHelp", "Quorum", "Toll", "Unit", "choose", "quorums", "units"]
