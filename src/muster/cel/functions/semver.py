"""Semantic versions (semver.org 2.0.0), ordered as the standard says."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from muster.cel.functions.function import Codec, Function
from muster.cel.types import BOOL, INT, STRING, Opaque

SEMVER = Opaque("kubernetes.Semver")

_LONGEST = 1024
_NUMBER = r"(0|[1-9][0-9]*)"
_PART = r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_PATTERN = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PART}(?:\.{_PART})*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?", re.ASCII
)


class Version(NamedTuple):
    """A version without its build metadata, which takes no part in comparisons."""

    major: int
    minor: int
    patch: int
    pre: str


@lru_cache(maxsize=4096)
def parse(text: str) -> Version:
    matched = _PATTERN.fullmatch(text) if len(text) <= _LONGEST else None
    if matched is None:
        raise ValueError(f"{text[:_LONGEST]!r} is not a semantic version")
    major, minor, patch, pre, _ = matched.groups()
    return Version(int(major), int(minor), int(patch), pre or "")


def parse_normalized(text: str, normalize: bool) -> Version:
    return parse(_normalized(text) if normalize else text)


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse_normalized(text, normalize)
    except ValueError:
        return False
    return True


def _normalized(text: str) -> str:
    """A leading v is dropped, missing parts become 0, leading zeros go."""
    core = text.removeprefix("v")
    end = next((at for at, letter in enumerate(core) if letter in "-+"), len(core))
    parts = [part.lstrip("0") or ("0" if part else "") for part in core[:end].split(".")]
    parts += ["0"] * (3 - len(parts))
    return ".".join(parts) + core[end:]


def compare(one: Version, other: Version) -> int:
    mine, theirs = _order(one), _order(other)
    return (mine > theirs) - (mine < theirs)


def _order(version: Version) -> tuple[int, int, int, int, list[tuple[int, int, str]]]:
    """A sort key: a pre-release comes before its release; numbers before words, fewer parts before more."""
    parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in version.pre.split(".") if version.pre]
    return (version.major, version.minor, version.patch, 0 if version.pre else 1, parts)


def _text(version: Version) -> str:
    core = f"{version.major}.{version.minor}.{version.patch}"
    return f"{core}-{version.pre}" if version.pre else core


CODEC = Codec(SEMVER, b"s", _text, parse)

FUNCTIONS = (
    Function("semver", (STRING,), SEMVER, parse, member=False, walk=0.1),
    Function("semver", (STRING, BOOL), SEMVER, parse_normalized, member=False, walk=0.1),
    Function("isSemver", (STRING,), BOOL, is_semver, member=False, walk=0.1),
    Function("isSemver", (STRING, BOOL), BOOL, is_semver, member=False, walk=0.1),
    Function("major", (SEMVER,), INT, lambda version: version.major),
    Function("minor", (SEMVER,), INT, lambda version: version.minor),
    Function("patch", (SEMVER,), INT, lambda version: version.patch),
    Function("isGreaterThan", (SEMVER, SEMVER), BOOL, lambda one, other: compare(one, other) > 0),
    Function("isLessThan", (SEMVER, SEMVER), BOOL, lambda one, other: compare(one, other) < 0),
    Function("compareTo", (SEMVER, SEMVER), INT, compare),
)
