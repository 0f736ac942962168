"""The order of queued entities, their backoff, and which change requeues which of them."""
