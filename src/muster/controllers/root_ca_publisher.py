"""Every namespace has a ConfigMap `kube-root-ca.crt` with the certificate that the API server is verified by.

The certificate is the one that the server publishes in `kube-system/extension-apiserver-authentication`.
"""

from __future__ import annotations

from muster.api.errors import ApiError
from muster.api.resources import CONFIG_MAPS, NAMESPACES
from muster.controllers.controller import Controller
from muster.controllers.objects import MetadataOnly

NAME = "kube-root-ca.crt"
_PUBLISHED = ("kube-system", "extension-apiserver-authentication")
_DESCRIPTION = "The certificates by which programs in this cluster verify its API server, under its internal names."


class RootCaPublisher(Controller):
    name = "root-ca-cert-publisher"
    workers = 4

    def setup(self) -> None:
        self._namespaces = self.watch(NAMESPACES)
        self._namespaces.on_change(lambda old, new: self.queue.add((new or old).metadata.name))
        self.watch(CONFIG_MAPS).on_change(self._map_changed)

    def _map_changed(self, old: MetadataOnly | None, new: MetadataOnly | None) -> None:
        changed = new or old
        assert changed is not None
        where = (changed.metadata.namespace, changed.metadata.name)
        if changed.metadata.name == NAME:
            self.queue.add(changed.metadata.namespace)
        elif where == _PUBLISHED:
            for namespace in list(self._namespaces.objects.values()):
                self.queue.add(namespace.metadata.name)

    async def reconcile(self, key: str) -> float | None:
        namespace: MetadataOnly | None = self._namespaces.get("", key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return None
        wanted = await self._authority()
        if not wanted:
            return None
        try:
            found = await self.client.get(CONFIG_MAPS, NAME, key)
        except ApiError as error:
            if error.code != 404:
                raise
            await self._create(key, wanted)
            return None
        if found.get("data") != {"ca.crt": wanted}:
            await self.client.patch(CONFIG_MAPS, NAME, {"data": {"ca.crt": wanted}}, key)
        return None

    async def _authority(self) -> str:
        namespace, name = _PUBLISHED
        try:
            published = await self.client.get(CONFIG_MAPS, name, namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return ""
        return published.get("data", {}).get("client-ca-file", "")

    async def _create(self, namespace: str, certificate: str) -> None:
        meta = {"name": NAME, "annotations": {"kubernetes.io/description": _DESCRIPTION}}
        try:
            await self.client.create(CONFIG_MAPS, {"metadata": meta, "data": {"ca.crt": certificate}}, namespace)
        except ApiError as error:
            # Another client created it first, or the namespace is being deleted.
            if error.code not in (403, 404, 409):
                raise
