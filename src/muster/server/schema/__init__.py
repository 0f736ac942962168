"""What the server knows of every built-in kind: fields, protobuf numbers, list keys, merge rules.

One table (`tables.json`, written by `tools/schema/generate.py`) drives decoding, field validation, patches,
server-side apply and OpenAPI. It is read on first use, and each message is built when it is first asked for.
"""

from muster.server.schema.model import Field, Message, kind, message

__all__ = ["Field", "Message", "kind", "message"]
