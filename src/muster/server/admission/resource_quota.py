"""ResourceQuotas: what would exceed one is refused, and what is let in is charged to its status at once.

Charged before the object is stored, on the version of the quota that was read, so that a burst of requests cannot
overdraw it. What was charged and then not stored is given back by the quota controller.
"""

from __future__ import annotations

from muster.api import quota
from muster.api.errors import ApiError, forbidden
from muster.api.quota import Amounts
from muster.api.resources import RESOURCE_QUOTAS
from muster.client.protocol import Client
from muster.server.resources.kind import Obj, Write

_RACES = 10
_ON_UPDATE = frozenset(("services", "persistentvolumeclaims"))  # kinds whose changes can use more than before


class QuotaGuard:
    """Raises 403 where a quota forbids a write; otherwise charges it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, write: Write, new: Obj, old: Obj | None) -> None:
        group, plural = write.kind.group, write.kind.plural
        if write.subresource or (old is not None and (group or plural not in _ON_UPDATE)):
            return
        for _ in range(_RACES):
            quotas = write.reader.list("resourcequotas", "", write.namespace)
            if not quotas:
                return
            asked = quota.usage(group, plural, new)
            if old is not None:
                asked = quota.difference(asked, quota.usage(group, plural, old))
            charged = [made for each in quotas if (made := _charge(write, each, new, asked)) is not None]
            if write.dry_run or await self._store(charged):
                return
        raise ApiError(409, "Conflict", "Operation cannot be fulfilled: the quota status changed too often; try again")

    async def _store(self, charged: list[Obj]) -> bool:
        """Write the charged quotas; False when one of them has changed meanwhile."""
        for each in charged:
            try:
                await self._client.update(RESOURCE_QUOTAS, each, subresource="status")
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
                return False
        return True


def _charge(write: Write, found: Obj, new: Obj, asked: Amounts) -> Obj | None:
    """The quota as charged; None where it is not about the object. Raises where it would be exceeded."""
    spec: Obj = found.get("spec") or {}
    name: str = found["metadata"]["name"]
    hard = quota.parsed(spec.get("hard"))
    if not quota.in_scope(spec, write.kind.plural, new):
        return None
    if not write.kind.group and write.kind.plural == "pods" and (lacking := quota.missing(new, hard)):
        words = "; ".join(f"{each} for: {','.join(sorted(lacking[each]))}" for each in sorted(lacking))
        raise forbidden("", "pods", write.name, f"failed quota: {name}: must specify {words}")
    counted = {each: amount for each, amount in asked.items() if each in hard and amount.nanos > 0}
    if not counted:
        return None
    status: Obj = found.get("status") or {}
    if any(each not in (status.get("hard") or {}) for each in counted):
        why = f"status unknown for quota: {name}, resources: {','.join(sorted(counted))}"
        raise forbidden(write.kind.group, write.kind.plural, write.name, why)
    used = quota.parsed(status.get("used"))
    after = used | quota.total([{each: used[each] for each in counted if each in used}, counted], counted)
    if over := sorted(each for each in counted if after[each].nanos > hard[each].nanos):
        said = [_listed(amounts, over) for amounts in (counted, used, hard)]
        why = f"exceeded quota: {name}, requested: {said[0]}, used: {said[1]}, limited: {said[2]}"
        raise forbidden(write.kind.group, write.kind.plural, write.name, why)
    return {**found, "status": {**status, "used": {**(status.get("used") or {}), **quota.rendered(after)}}}


def _listed(amounts: Amounts, names: list[str]) -> str:
    texts = quota.rendered({name: amounts[name] for name in names if name in amounts})
    return ",".join(f"{name}={texts.get(name, '0')}" for name in names)
