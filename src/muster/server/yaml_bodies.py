"""YAML bodies as JSON values, as Kubernetes reads them.

YAML is a language in which few bytes can ask for much: aliases stand for gigabytes, deep nesting exhausts the stack of
the C parser, a number to the base 60 takes hours. So the events of a body are looked at first, which costs little
whatever they say, and only a document without such things, and not too large, is built.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml

from muster.api.errors import bad_request
from muster.server.json_bodies import MAX_DEPTH

MAX_NODES = 100_000  # a second of work; the largest manifests in use have a tenth of it

_TAG = "tag:yaml.org,2002:"
_KNOWN_TAGS = frozenset((None, "!", f"{_TAG}str", f"{_TAG}map", f"{_TAG}seq"))
_BEGINNINGS = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_ENDS = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_NUMBERS = {
    f"{_TAG}int": re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)$"),
    f"{_TAG}float": re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?$"
    ),
}
_UNUSED = (f"{_TAG}timestamp", f"{_TAG}value")


class _Loader(yaml.CSafeLoader):
    """Times are strings, and numbers are to the bases that JSON users know."""


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in known if tag not in _UNUSED]
    for letter, known in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def decode(body: bytes) -> Any:
    """The JSON value of a YAML body. Raises ApiError 400 when there is none, or when it is too much."""
    try:
        _look(body)
        value = yaml.load(body, Loader=_Loader)
        return msgspec.json.decode(msgspec.json.encode(value))
    except (yaml.YAMLError, msgspec.MsgspecError, TypeError, ValueError, ArithmeticError, RecursionError) as wrong:
        raise bad_request(f"the object provided is unrecognized: yaml: {wrong}") from None


def _look(body: bytes) -> None:
    depth = 0
    for count, event in enumerate(yaml.parse(body, Loader=_Loader)):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("aliases are not accepted")
        if getattr(event, "tag", None) not in _KNOWN_TAGS:
            raise ValueError("tags are not accepted")
        if isinstance(event, _BEGINNINGS):
            depth += 1
        elif isinstance(event, _ENDS):
            depth -= 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            raise ValueError("the document is nested too deeply or has too many parts")
