"""From a request and a trial to a verdict: greedy placement, topology, exact search, shortages.

`plan.plan` is the entry. Nothing here is shared with `checking`, which checks the verdicts.
"""
