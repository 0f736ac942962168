"""Logs as Kubernetes components write them: klog text, or one JSON object a line.

A line is a message and keys: `log.info("Pod bound", extra=keys(pod="ns/name"))`. Verbosity follows `-v`:
`log.log(V(4), …)` shows from `-v 4` on. Nothing here is global except what `configure` is told to set up.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Any, TextIO

import msgspec

_SEVERITY = ((logging.CRITICAL, "F"), (logging.ERROR, "E"), (logging.WARNING, "W"))


def V(level: int) -> int:
    """The logging level of a klog verbosity."""
    return max(1, logging.INFO - level)


def keys(**values: Any) -> dict[str, Any]:
    """The keys of a log line, for `extra`."""
    return {"keys": values}


class TextFormatter(logging.Formatter):
    """`I1025 00:15:15.525108 1 binding.py:116] "Pod bound" pod="ns/name"`."""

    def format(self, record: logging.LogRecord) -> str:
        severity = next((letter for level, letter in _SEVERITY if record.levelno >= level), "I")
        when = time.localtime(record.created)
        micros = int(record.created % 1 * 1e6)
        head = f"{severity}{when.tm_mon:02}{when.tm_mday:02} {time.strftime('%H:%M:%S', when)}.{micros:06}"
        place = f"{os.getpid():>7} {record.filename}:{record.lineno}]"
        words = [head, place, _quoted(record.getMessage())]
        words += [f"{key}={_text(value)}" for key, value in _keys(record).items()]
        line = " ".join(words)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JSONFormatter(logging.Formatter):
    """`{"ts":1729815315525.108,"caller":"binding.py:116","msg":"Pod bound","v":0,"pod":"ns/name"}`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno <= logging.INFO:
            line["v"] = logging.INFO - record.levelno
        else:
            line["level"] = record.levelname.lower()
        line.update(_keys(record))
        if record.exc_info:
            line["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def configure(verbosity: int = 0, form: str = "text", stream: TextIO | None = None) -> logging.Handler:
    """Send the package's logs to a stream (stderr) in one of the two forms; returns the handler."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JSONFormatter() if form == "json" else TextFormatter())
    logger = logging.getLogger("muster")
    logger.handlers = [handler]
    logger.setLevel(V(verbosity))
    logger.propagate = False
    return handler


def _keys(record: logging.LogRecord) -> dict[str, Any]:
    return getattr(record, "keys", None) or {}


def _text(value: Any) -> str:
    return str(value) if isinstance(value, int | float) else _quoted(str(value))


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
