"""Where objects live: one interface, a memory store and a SQLite store."""
