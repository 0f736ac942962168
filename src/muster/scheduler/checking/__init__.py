"""The checker: whether a verdict is true, decided by other code than the planner's.

`validate` checks a placement before anything of it is bound, `check_proof` a proof of infeasibility. Both compute
from the API objects and from the inputs of a request; they share no code with planning or plugins.
"""
