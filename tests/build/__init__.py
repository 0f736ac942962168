"""The builders of all tests: objects by sentence, and the smallest surroundings that a test needs.

- `objects`: API types, as the scheduler receives them; `manifests`: the same as JSON, beside `muster.testing.builders`.
- `cluster`, `planning`, `scheduler`: a cluster cache, a planner on it, a whole scheduler with an instant API server.
- `random_objects`, `random_manifests`, `planning_cases`, `preemption_cases`: drawn from a seed or by hypothesis.
- `counted_state`: random clusters, and all that a cluster counts and caches as values to compare.
- `examples`: how many examples a property test runs.
"""
