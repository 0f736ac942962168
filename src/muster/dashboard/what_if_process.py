"""The process that answers one what-if: a snapshot and manifests on stdin, the answer on stdout.

The first line is JSON (`WhatIfRequest`) and says how long the two parts after it are. A question that cannot be
answered gives an object with `failure`.
"""

from __future__ import annotations

import sys

import msgspec

from muster.scheduler.simulation.snapshot import decode
from muster.views.failures import ViewFailure
from muster.views.what_if import what_if


class WhatIfRequest(msgspec.Struct, frozen=True):
    """The lengths of the two parts that follow, and the namespace of manifests that name none."""

    snapshot: int
    manifests: int
    namespace: str


class WhatIfFailure(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    failure: str
    undecided: bool = False


def main() -> None:
    """Answer the question on stdin."""
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=WhatIfRequest)
    snapshot = sys.stdin.buffer.read(request.snapshot)
    manifests = sys.stdin.buffer.read(request.manifests)
    try:
        found: object = what_if(decode(snapshot), manifests, request.namespace)
    except ViewFailure as error:
        found = WhatIfFailure(error.message, error.undecided)
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
