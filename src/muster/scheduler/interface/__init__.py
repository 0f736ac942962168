"""The values that enter and leave the scheduler: object keys, events in, decisions out, cluster events."""
