"""Where objects live: one interface, one in-memory view that all reads use, two implementations (memory, SQLite)."""
