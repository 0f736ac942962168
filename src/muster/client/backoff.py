"""Exponential backoff between retries, and which errors are worth a retry."""

from __future__ import annotations

from muster.api.errors import ApiError
from muster.client.clock import Clock


class Backoff:
    """Delays that double up to a maximum; jitter shortens each by up to half, so that clients do not retry in step."""

    def __init__(self, clock: Clock, first: float = 0.1, most: float = 10.0) -> None:
        self._clock = clock
        self._first = first
        self._most = most
        self.tries = 0

    def delay(self) -> float:
        """The next delay in seconds."""
        whole = min(self._most, self._first * 2 ** min(self.tries, 30))
        self.tries += 1
        return whole * (1.0 - 0.5 * self._clock.jitter())

    async def wait(self, error: BaseException | None = None) -> None:
        """Sleep for the next delay, or for the error's `Retry-After` if that is longer."""
        asked = error.retry_after if isinstance(error, ApiError) and error.retry_after else 0
        await self._clock.sleep(max(self.delay(), float(asked)))

    def reset(self) -> None:
        self.tries = 0


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: no answer, too many requests, or a server error."""
    if isinstance(error, ApiError):
        return error.code == 429 or error.code >= 500
    return isinstance(error, ConnectionError | TimeoutError)
