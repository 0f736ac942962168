"""One scheduling cycle: events in, due work, one queued entity, decisions out."""
