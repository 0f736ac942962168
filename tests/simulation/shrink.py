"""Makes a bad day smaller: deeds are left out, half of them, a quarter, one, for as long as it still fails alike."""

from __future__ import annotations

from collections.abc import Callable


def shrink(count: int, complaint: Callable[[list[int]], str]) -> tuple[list[int], str]:
    """The numbers of the deeds that are needed, and the complaint about them; empty if all of them do no harm.

    A smaller day fails alike when its first complaint begins with the same invariant.
    """
    kept = list(range(count))
    text = complaint(kept)
    if not text:
        return kept, ""
    size = max(1, len(kept) // 2)
    while True:
        smaller = False
        start = 0
        while start < len(kept):
            tried = kept[:start] + kept[start + size :]
            found = complaint(tried)
            if found and _kind(found) == _kind(text):
                kept, text, smaller = tried, found, True
            else:
                start += size
        if size == 1 and not smaller:
            return kept, text
        size = max(1, size // 2)


def _kind(text: str) -> str:
    """The invariant that a complaint is about, without the time before it."""
    return " ".join(text.split()[1:2])
