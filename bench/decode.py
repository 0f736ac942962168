"""Decoding a list of 10,000 pods: the scheduler's projection beside plain dicts.

What informers pay on every start. `python -m bench.decode` prints the figures; `run()` gives them to `python -m bench`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bench.objects import job_pod
from muster.api.types import Pod

PODS = 10_000


class PodList(msgspec.Struct, gc=False):
    items: list[Pod]


def run(pods: int = PODS, rounds: int = 3) -> dict[str, float]:
    """Milliseconds to decode the list, by way of decoding and with the collector on and off."""
    data = msgspec.json.encode({"items": [job_pod(index) for index in range(pods)]})
    projection, plain = msgspec.json.Decoder(PodList), msgspec.json.Decoder()
    one, event = msgspec.json.Decoder(Pod), msgspec.json.encode(job_pod(7))
    figures = {"bytes_per_pod": len(data) / pods}
    for name, decode in (("projection", projection.decode), ("dict", plain.decode)):
        figures[f"{name}_ms"] = _best(decode, data, rounds)
        gc.disable()
        try:
            figures[f"{name}_ms_gc_off"] = _best(decode, data, rounds)
        finally:
            gc.enable()
    started = time.perf_counter()
    for _ in range(pods):
        one.decode(event)
    figures["event_us"] = (time.perf_counter() - started) / pods * 1e6
    return figures


def _best(decode: Callable[[bytes], Any], data: bytes, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        started = time.perf_counter()
        kept = decode(data)
        best = min(best, time.perf_counter() - started)
        del kept
    return best * 1000


def main() -> None:
    figures = run()
    print(f"decode {PODS} pods of {figures['bytes_per_pod']:.0f} bytes (best of 3)")
    for name in ("projection", "dict"):
        on, off = figures[f"{name}_ms"], figures[f"{name}_ms_gc_off"]
        print(f"  {name:<12}{on:8.0f} ms   {off:8.0f} ms with the collector off")
    print(f"  {'one event':<12}{figures['event_us']:8.1f} us")


if __name__ == "__main__":
    main()
