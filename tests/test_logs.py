"""Logs as Kubernetes components write them."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from muster.logs import V, configure, keys


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    logger = logging.getLogger("muster")
    before = (logger.handlers, logger.level, logger.propagate)
    yield io.StringIO()
    logger.handlers, logger.level, logger.propagate = before


def test_text_logs_look_like_klog(stream: io.StringIO):
    configure(0, "text", stream)

    logging.getLogger("muster.engine.x").warning("Pod bound", extra=keys(pod="ns/name", count=3))

    pattern = r'W\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] "Pod bound" pod="ns/name" count=3\n'
    assert re.fullmatch(pattern, stream.getvalue())


def test_json_logs_are_one_object_a_line(stream: io.StringIO):
    configure(0, "json", stream)

    logging.getLogger("muster.engine.x").info('a "quoted"\nline', extra=keys(pod="ns/name"))

    (line,) = stream.getvalue().splitlines()
    made = json.loads(line)
    assert (made["msg"], made["pod"], made["v"]) == ('a "quoted"\nline', "ns/name", 0)


def test_verbosity_decides_what_is_shown(stream: io.StringIO):
    configure(3, "text", stream)
    log = logging.getLogger("muster.engine.x")

    log.log(V(3), "shown")
    log.log(V(4), "hidden")

    assert "shown" in stream.getvalue()
    assert "hidden" not in stream.getvalue()
