"""The pages that are not about resources: /version, the health checks and /metrics."""

from __future__ import annotations

import platform

from muster.server.backend import Backend
from muster.server.media import encode
from muster.server.request import Request, Response

_CHECKED = ("livez", "readyz", "healthz")
VERSION = {
    "major": "1",
    "minor": "37",
    "emulationMajor": "1",
    "emulationMinor": "37",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "36",
    "gitVersion": "v1.37.0+muster",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": f"python{platform.python_version()}",
    "compiler": platform.python_implementation().lower(),
    "platform": f"{platform.system().lower()}/{platform.machine()}",
}


class Health:
    """Answers for the server as a whole."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def answer(self, request: Request) -> Response | None:
        """The page at a path, or None when it is not one of these."""
        if request.method not in ("GET", "HEAD"):
            return None
        first, _, rest = request.path.strip("/").partition("/")
        if first == "version" and not rest:
            return Response(200, encode(VERSION))
        if first in _CHECKED:
            return self._checked(request, first, rest)
        if first == "metrics" and not rest and self._backend.hooks.metrics is not None:
            return Response(200, self._backend.hooks.metrics(), "text/plain; version=0.0.4; charset=utf-8")
        return None

    def _checks(self, page: str) -> dict[str, str]:
        """What is wrong, by check; empty where all is well."""
        # The store is called what dashboards and scripts look for.
        checks = {"ping": "", "log": "", "etcd": self._backend.store.failure}
        if page == "readyz":
            checks["shutdown"] = "process is shutting down" if self._backend.closing else ""
        if page != "livez":  # a component that is not ready is no reason to restart the process
            checks |= {name: check() for name, check in self._backend.hooks.health.items()}
        return checks

    def _checked(self, request: Request, page: str, single: str) -> Response | None:
        checks = self._checks(page)
        if single:
            if single not in checks:
                return None
            wrong = checks[single]
            body = "ok" if not wrong else f"internal server error: {wrong}"
            return Response(500 if wrong else 200, body.encode(), "text/plain; charset=utf-8")
        excluded = set(request.query.get("exclude", ()))
        failed = [name for name, wrong in checks.items() if wrong and name not in excluded]
        lines = [_line(name, wrong, name in excluded) for name, wrong in checks.items()]
        unknown = excluded - set(checks)
        if unknown:
            listed = ", ".join(f'"{name}"' for name in sorted(unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}")
        lines.append(f"{page} check {'failed' if failed else 'passed'}")
        verbose = failed or "verbose" in request.query
        body = "\n".join(lines) + "\n" if verbose else "ok"
        return Response(500 if failed else 200, body.encode(), "text/plain; charset=utf-8")


def _line(name: str, wrong: str, excluded: bool) -> str:
    if excluded:
        return f"[+]{name} excluded: ok"
    return f"[-]{name} failed: reason withheld" if wrong else f"[+]{name} ok"
