"""What is asked of the planner and what it answers: requests, verdicts, proofs and budgets, as frozen values."""
