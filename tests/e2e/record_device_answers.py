"""Records what a real kube-apiserver answers to the objects of `tests.server.device_cases`.

Run: python -m tests.e2e.record_device_answers BIN_DIR
"""

from __future__ import annotations

import json
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

from e2e.kube.cluster import RealCluster

from tests.server.device_answers import RECORDED, answers
from tests.server.device_cases import Obj


def caller(cluster: RealCluster):
    """Calls of the administrator."""
    context = ssl.create_default_context(cafile=str(cluster.ca_file))

    def call(method: str, path: str, body: Obj | None) -> tuple[int, Obj]:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {cluster.token}"}
        request = urllib.request.Request(cluster.server + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=context) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    return call


def main() -> None:
    with RealCluster(Path(sys.argv[1])) as cluster:
        found = answers(caller(cluster))
    RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    print(f"{len(found)} answers")


if __name__ == "__main__":
    main()
