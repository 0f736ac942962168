"""Why an entity waits and what would help."""
