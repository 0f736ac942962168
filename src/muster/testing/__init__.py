"""What users get for their own tests: a pytest fixture with a fresh server, and builders of objects."""
