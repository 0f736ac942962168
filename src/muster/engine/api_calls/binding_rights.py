"""The right to bind pods, namespace by namespace: a missing one is noticed once and asked for again now and then.

RBAC answers for a whole namespace. After it has refused one bind, the other binds there fail without a request, until
one of them is due to try again; those that come meanwhile wait for its answer.
"""

from __future__ import annotations

import asyncio
import logging

from muster.api.errors import ApiError
from muster.client.clock import Clock
from muster.logs import keys

log = logging.getLogger(__name__)

RETRY_SECONDS = 10.0


def is_missing_right(error: ApiError) -> bool:
    """Whether the answer is about the right of the user, and not about this pod (admission answers 403 too)."""
    return error.code == 401 or (error.code == 403 and " cannot create resource " in error.message)


class BindingRights:
    """Which namespaces refuse binds for want of a right."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: dict[str, tuple[float, str]] = {}  # namespace -> when to ask again, the answer
        self._asking: dict[str, asyncio.Event] = {}

    async def refusal(self, namespace: str) -> str:
        """Why a bind there would be refused; empty if it may be sent. Must be followed by `answered` if empty."""
        while namespace in self._refused:
            until, text = self._refused[namespace]
            if self._clock.now() < until:
                return text
            asking = self._asking.get(namespace)
            if asking is None:
                self._asking[namespace] = asyncio.Event()
                return ""
            await asking.wait()
        return ""

    def answered(self, namespace: str, text: str) -> None:
        """A bind was answered; `text` names the missing right, empty if there is none."""
        if text:
            if namespace not in self._refused:
                log.error("Not allowed to bind pods", extra=keys(namespace=namespace, err=text))
            self._refused[namespace] = (self._clock.now() + RETRY_SECONDS, text)
        elif self._refused.pop(namespace, None) is not None:
            log.info("Allowed to bind pods again", extra=keys(namespace=namespace))
        asking = self._asking.pop(namespace, None)
        if asking is not None:
            asking.set()
