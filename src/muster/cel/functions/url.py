"""URLs: absolute ones and absolute paths, and their parts."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from muster.cel.functions.function import Codec, Function
from muster.cel.types import BOOL, STRING, ListOf, MapOf, Opaque

URL = Opaque("kubernetes.URL")
_SAFE = "/!$&'()*+,;=:@-._~%"


def parse(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 (raises where the port is not a number)
    except ValueError as error:
        raise ValueError(f"URL parse error during conversion from string: {error}") from None
    if any(letter < " " or letter == "\x7f" for letter in text):
        raise ValueError("URL parse error during conversion from string: invalid character in URL")
    if not parts.scheme and not text.startswith("/"):
        raise ValueError("URL parse error during conversion from string: invalid URI for request")
    return parts


def is_url(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def hostname(parts: SplitResult) -> str:
    name = host(parts)
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def port(parts: SplitResult) -> str:
    return host(parts).rpartition("]")[2].partition(":")[2]


def query(parts: SplitResult) -> dict[str, list[str]]:
    return parse_qs(parts.query, keep_blank_values=True)


CODEC = Codec(URL, b"u", SplitResult.geturl, urlsplit)

FUNCTIONS = (
    Function("url", (STRING,), URL, parse, member=False, walk=0.1),
    Function("isURL", (STRING,), BOOL, is_url, member=False, walk=0.1),
    Function("getScheme", (URL,), STRING, lambda parts: parts.scheme),
    Function("getHost", (URL,), STRING, host),
    Function("getHostname", (URL,), STRING, hostname),
    Function("getPort", (URL,), STRING, port),
    Function("getEscapedPath", (URL,), STRING, lambda parts: quote(parts.path, safe=_SAFE)),
    Function("getQuery", (URL,), MapOf(ListOf(STRING)), query),
)
