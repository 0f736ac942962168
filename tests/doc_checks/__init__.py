"""Checks of the documentation against the code: names, paths, commands, flags, fields and metrics.

`markdown` reads pages; each other module takes a page and yields what is wrong with it. `tests/test_docs.py` runs them
over every page, and over small pages that are wrong on purpose.
"""
