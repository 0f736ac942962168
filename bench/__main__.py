"""`make bench`: every page of figures, one after the other, and at the end one table of all that have a bar.

`python -m bench decide gangs` runs only those. Times of one run can be compared with each other; between runs these
machines are too noisy, so ratios are what counts.
"""

from __future__ import annotations

import importlib
import sys

from bench.figures import Figure, table

PAGES = (
    "decode",
    "decide",
    "gangs",
    "cycle",
    "wakeups",
    "workloads",
    "preemption",
    "devices",
    "scale",
    "starvation",
    "promises",
    "search",
    "intake",
    "server",
    "http",
    "crowd",
    "end_to_end",
    "day",
    "pressure",
    "cluster",
    "dashboard",
)


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(PAGES))
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(PAGES)}", file=sys.stderr)
        return 64
    sys.argv = sys.argv[:1]
    rows: list[tuple[str, Figure]] = []
    for name in names or PAGES:
        print(f"\n## {name}\n", flush=True)
        for figure in importlib.import_module(f"bench.{name}").figures():
            print(figure, flush=True)
            rows.append((name, figure))
    print(f"\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
