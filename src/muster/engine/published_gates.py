"""The gates that the scheduler of a cluster runs with, where those who ask about the cluster find them.

They are an annotation of its lease: the leader writes it with every renewal, and a scheduler that elects nobody writes
it once. So `explain`, `simulate` and the dashboard answer as that scheduler decides, without being told its flags.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from muster.api.errors import ApiError
from muster.api.gates import DEFAULT, FeatureGates, resolve
from muster.api.resources import LEASES
from muster.client.objects import metadata, part
from muster.client.protocol import Client, Obj
from muster.logs import V, keys

log = logging.getLogger(__name__)

ANNOTATION = "scheduling.muster.dev/feature-gates"
GROUPS_FOR = "scheduling.muster.dev/makes-groups-for"  # the schedulers whose pods are in groups that Muster makes
OWN = ("kube-system", "muster")  # the lease of a scheduler that was not told another name
PLACES = (OWN, ("muster-system", "muster"))  # and that of the installed one


def annotation_of(gates: FeatureGates) -> dict[str, str]:
    """The annotation that says which gates are not at their default."""
    switched = sorted(gates.switched().items())
    return {ANNOTATION: ",".join(f"{name}={str(on).lower()}" for name, on in switched)}


async def published_gates(client: Client) -> FeatureGates:
    """The gates of the Muster that leads in a cluster; the defaults where none says anything, or none may be asked."""
    leases = [lease for place in PLACES if (lease := await _lease(client, *place)) is not None]
    held_first = sorted(leases, key=lambda lease: not part(lease, "spec").get("holderIdentity"))
    for lease in held_first:
        text = _annotation(lease)
        if text is not None:
            return _parsed(text)
    return DEFAULT


def groups_annotation(schedulers: Collection[str]) -> dict[str, str]:
    """The annotation that says whose pods are in the groups of their workloads, without naming them."""
    return {GROUPS_FOR: ",".join(sorted(schedulers))}


async def groups_made_for(client: Client) -> tuple[str, ...]:
    """The schedulers whose pods are in groups that the Muster of a cluster makes."""
    leases = [lease for place in PLACES if (lease := await _lease(client, *place)) is not None]
    for lease in sorted(leases, key=lambda lease: not part(lease, "spec").get("holderIdentity")):
        annotations: dict[str, str] = metadata(lease).get("annotations") or {}
        if GROUPS_FOR in annotations:
            return tuple(name for name in annotations[GROUPS_FOR].split(",") if name)
    return ()


async def publish(client: Client, gates: FeatureGates) -> None:
    """Say which gates are in force, for a scheduler that elects nobody. Where that is not allowed, nobody is told."""
    wanted, (namespace, name) = annotation_of(gates), OWN
    try:
        lease = await client.get(LEASES, name, namespace)
        if (_annotation(lease) or "") != wanted[ANNOTATION]:
            await client.patch(LEASES, name, {"metadata": {"annotations": wanted}}, namespace)
    except ApiError as error:
        if error.code != 404:
            log.log(V(2), "The feature gates are not published", extra=keys(err=error.message))
        elif wanted[ANNOTATION]:
            await _create(client, wanted)
    except (ConnectionError, TimeoutError) as error:
        log.log(V(2), "The feature gates are not published", extra=keys(err=str(error)))


async def _create(client: Client, annotations: dict[str, str]) -> None:
    namespace, name = OWN
    meta = {"name": name, "namespace": namespace, "annotations": annotations}
    body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta, "spec": {}}
    try:
        await client.create(LEASES, body)
    except (ApiError, ConnectionError, TimeoutError) as error:
        log.log(V(2), "The feature gates are not published", extra=keys(err=str(error)))


def _annotation(lease: Obj) -> str | None:
    annotations: dict[str, str] = metadata(lease).get("annotations") or {}
    return annotations.get(ANNOTATION)


async def _lease(client: Client, namespace: str, name: str) -> Obj | None:
    try:
        return await client.get(LEASES, name, namespace)
    except (ApiError, ConnectionError, TimeoutError):
        return None


def _parsed(text: str) -> FeatureGates:
    """The gates of an annotation. Names that only a newer scheduler knows have no meaning here."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return resolve({name: value == "true" for name, _, value in pairs})[0]
