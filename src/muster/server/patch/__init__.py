"""The three kinds of patch that change an object by describing the change. Server-side apply lives in its own room.

Each module has one `apply(current, patch, message)`. It is pure: neither the object nor the patch is changed, and the
result may share what did not change with both.
"""

from muster.server.patch import json_patch, merge_patch, strategic

__all__ = ["json_patch", "merge_patch", "strategic"]
