"""One module per scheduling rule, all of one shape, registered in one list."""
