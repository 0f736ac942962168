"""The same questions judged by other code: `validate` checks plans, `check_proof` checks proofs of infeasibility."""
