"""The rules that objects must keep, one module a kind.

Every function takes plain JSON dicts in the hub version and gives back all field errors at once, in
Kubernetes' own words: error type, field path and text are what clients match on.
"""
