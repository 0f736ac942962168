"""Admission that users configure: webhooks and policies, which are objects themselves.

`chain.DynamicAdmission` is asked on every write: mutating policies and webhooks before the object is validated,
validating ones after. Nothing here is asked about the configuration objects themselves, so that a broken one can always
be repaired. Where nothing is configured a write costs six comparisons of numbers.
"""
