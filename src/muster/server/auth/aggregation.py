"""Writes into aggregated cluster roles the rules that they gather, so that people can read them there.

The authorizer gathers by itself and needs none of this; what is stored here is for `kubectl get clusterrole -o yaml`
and for servers that read the rules only.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

import msgspec

from muster.api.errors import ApiError
from muster.client.following import follow
from muster.client.protocol import Client
from muster.server.auth.bootstrap import CLUSTER_ROLES
from muster.server.auth.rbac import Authorizer, RoleName

log = logging.getLogger(__name__)


class RoleAggregation:
    """Follows the cluster roles until cancelled."""

    def __init__(self, client: Client, authorizer: Authorizer) -> None:
        self._client = client
        self._authorizer = authorizer
        self.ready = asyncio.Event()

    async def run(self) -> None:
        changes = follow(self._client, CLUSTER_ROLES, pause=asyncio.sleep, into=RoleName)
        async with aclosing(changes):
            async for _ in changes:
                # Any role may be part of any aggregate, and there are few of either: look at them all.
                await self._bring_up_to_date()
                self.ready.set()

    async def _bring_up_to_date(self) -> None:
        for name, rules in self._authorizer.policy.outdated_aggregates():
            try:
                await self._client.patch(CLUSTER_ROLES, name, {"rules": [msgspec.to_builtins(rule) for rule in rules]})
            except (ApiError, ConnectionError) as error:
                log.debug("rules of %s not written: %s", name, error)
