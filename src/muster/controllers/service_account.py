"""Every namespace has a service account `default`, which pods run as unless they name another."""

from __future__ import annotations

from muster.api.errors import ApiError
from muster.api.resources import NAMESPACES, SERVICE_ACCOUNTS
from muster.controllers.controller import Controller
from muster.controllers.objects import MetadataOnly


class DefaultServiceAccount(Controller):
    name = "serviceaccount-controller"
    workers = 4

    def setup(self) -> None:
        self._namespaces = self.watch(NAMESPACES)
        self._accounts = self.watch(SERVICE_ACCOUNTS)
        self._namespaces.on_change(lambda old, new: self.queue.add((new or old).metadata.name))
        self._accounts.on_change(self._account_changed)

    def _account_changed(self, old: MetadataOnly | None, new: MetadataOnly | None) -> None:
        if new is None and old is not None and old.metadata.name == "default":
            self.queue.add(old.metadata.namespace)

    async def reconcile(self, key: str) -> float | None:
        namespace: MetadataOnly | None = self._namespaces.get("", key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return None
        if self._accounts.get(key, "default") is not None:
            return None
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": key}}
        try:
            await self.client.create(SERVICE_ACCOUNTS, account, key)
        except ApiError as error:
            # Another client created it first, or the namespace is being deleted.
            if error.code not in (403, 404, 409):
                raise
        return None
