"""Runs the plugins of a profile over the cached arrays, keeps their results per shape, and opens trials."""
