"""Writes into aggregated cluster roles the rules that they gather, so that people can read them there.

The authorizer gathers by itself and needs none of this; what is stored here is for `kubectl get clusterrole -o yaml`
and for servers that read the rules only.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from muster.api.errors import ApiError
from muster.client.clock import SystemClock
from muster.client.protocol import Client
from muster.client.reflector import Reflector, StoreFunctions
from muster.server.auth.bootstrap import CLUSTER_ROLES
from muster.server.auth.rbac import Authorizer, RoleName

log = logging.getLogger(__name__)


class RoleAggregation:
    """Follows the cluster roles until cancelled."""

    def __init__(self, client: Client, authorizer: Authorizer) -> None:
        self._client = client
        self._authorizer = authorizer
        self._changed = asyncio.Event()
        self.ready = asyncio.Event()

    async def run(self) -> None:
        store = StoreFunctions(self._role_changed, self._role_changed, self._role_changed)
        roles = Reflector(self._client, CLUSTER_ROLES, store, SystemClock(), into=RoleName)
        async with asyncio.TaskGroup() as group:
            group.create_task(roles.run())
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self._bring_up_to_date()
                self.ready.set()

    def _role_changed(self, _: object) -> None:
        """Any role may be part of any aggregate, and there are few of either: all of them are looked at."""
        self._changed.set()

    async def _bring_up_to_date(self) -> None:
        for name, rules in self._authorizer.policy.outdated_aggregates():
            try:
                await self._client.patch(CLUSTER_ROLES, name, {"rules": [msgspec.to_builtins(rule) for rule in rules]})
            except (ApiError, ConnectionError) as error:
                log.debug("rules of %s not written: %s", name, error)
