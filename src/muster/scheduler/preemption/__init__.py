"""Which pods must leave so that a group can start: victims, what their eviction costs, the cheapest sufficient set.

Everything here is computed on trials and changes nothing: nobody is evicted until the cycle has validated the plan.
"""
