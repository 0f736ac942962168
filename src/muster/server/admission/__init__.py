"""What happens to an object between decoding and storing: defaulting, priority, finalizers, limits."""
