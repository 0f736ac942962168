"""`make bench`: every page of figures, one after the other.

`python -m bench decide gangs` runs only those. Figures of one run can be compared with each other; between runs these
machines are too noisy, so ratios are what counts.
"""

from __future__ import annotations

import importlib
import sys

PAGES = ("decode", "decide", "gangs", "cycle", "preemption", "intake", "server", "http", "end_to_end")


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(PAGES))
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(PAGES)}", file=sys.stderr)
        return 64
    sys.argv = sys.argv[:1]
    for name in names or PAGES:
        print(f"\n## {name}\n", flush=True)
        importlib.import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
