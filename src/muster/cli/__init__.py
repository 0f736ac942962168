"""The command line: one module per command. A command parses its options, calls a package below, and prints."""
