"""The three kinds of patch that describe a change to an object. Server-side apply is in `muster.server.apply`.

Each module has one `apply(current, patch, message)`. It is pure: neither the object nor the patch is changed, and the
result may share what did not change with both.
"""

from muster.server.patch import json_patch, merge_patch, strategic

__all__ = ["json_patch", "merge_patch", "strategic"]
