"""What the objects are told: conditions, messages and wait reasons, each written once."""
