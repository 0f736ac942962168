"""The command line: one module per command. A command parses, calls a room below and prints."""
