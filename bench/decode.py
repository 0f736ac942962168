"""Decoding a list of 10,000 pods: the scheduler's projection beside plain dicts.

What informers pay on every start. `python -m bench.decode` prints the figures.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bench.figures import Figure
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


def figures() -> Iterator[Figure]:
    found = run()
    size = f"{PODS:,} pods of {found['bytes_per_pod']:.0f} bytes"
    for name, words in (("projection", "the scheduler's projection"), ("dict", "plain dicts")):
        off = f"{found[f'{name}_ms_gc_off']:.0f} ms with the collector off"
        yield Figure(f"decode {size} into {words}", found[f"{name}_ms"], "ms", note=off)
    yield Figure("decode one event", found["event_us"], "µs")


def main() -> None:
    for figure in figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
