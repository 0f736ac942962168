"""The headers by which another API server learns who asks, and what of the caller's own headers it may see.

The other server believes them because they come over a connection with the front proxy's client certificate, whose CA
it reads from the ConfigMap `extension-apiserver-authentication`. So nothing that a caller sends may look like them, and
the caller's own credentials go no further than this server.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from multidict import CIMultiDict

from muster.server.request import User

AGGREGATOR = User("system:kube-aggregator", ("system:masters",))  # who checks whether others answer
USER, UID, GROUP, EXTRA = "X-Remote-User", "X-Remote-Uid", "X-Remote-Group", "X-Remote-Extra-"
_HOP_BY_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
_OURS = frozenset(("authorization", "content-length", "cookie", "expect", "host", *_HOP_BY_HOP))
_THEIRS = frozenset(("content-length", "date", "server", "set-cookie", "content-type", *_HOP_BY_HOP))
_IDENTITIES = ("impersonate-", "x-remote-", "x-forwarded-")
_TOKEN = "!#$&'*+-.^_`|~"  # what a header's name may have beside letters and digits; % escapes the rest


def request_headers(given: Mapping[str, str], user: User) -> CIMultiDict[str]:
    """The caller's headers without credentials, and the headers that name the caller."""
    dropped = _OURS | _named_by_connection(given)
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in given.items():
        if name.lower() not in dropped and not name.lower().startswith(_IDENTITIES):
            headers.add(name, value)
    headers.add(USER, user.name)
    if user.uid:
        headers.add(UID, user.uid)
    for group in user.groups:
        headers.add(GROUP, group)
    for key, values in user.extra.items():
        for value in values:
            headers.add(EXTRA + quote(key.lower(), safe=_TOKEN), value)
    return headers


def response_headers(given: Mapping[str, str]) -> dict[str, str]:
    """What of another server's headers a caller gets. A cookie of its would be this server's for the caller."""
    dropped = _THEIRS | _named_by_connection(given)
    return {name: value for name, value in given.items() if name.lower() not in dropped}


def _named_by_connection(headers: Mapping[str, str]) -> set[str]:
    return {name.strip().lower() for name in headers.get("Connection", "").split(",") if name.strip()}
