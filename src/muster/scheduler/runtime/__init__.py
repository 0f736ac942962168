"""Runs the plugins of a profile over the arrays of the cache, caches the results for each shape, and opens trials."""
