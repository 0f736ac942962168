"""Which pods are evicted so that a group can start: victims, the cost of evicting them, the cheapest sufficient set.

Everything here is computed on trials and changes nothing: no pod is evicted until the cycle has validated the plan.
"""
