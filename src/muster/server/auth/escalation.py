"""Nobody may grant what they do not have: the check on writes to roles and bindings.

A role may hold only rules that its writer holds, unless the writer may `escalate` it; a binding may name only a role
whose rules the writer holds, unless the writer may `bind` that role.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from muster.api.errors import ApiError, bad_request, forbidden
from muster.server.auth.rbac import GROUP, MASTERS, Authorizer, RoleRef, describe
from muster.server.auth.rules import ALL, Action, Rule, uncovered
from muster.server.request import User
from muster.server.resources.kind import Write

Obj = dict[str, Any]
T = TypeVar("T")
_EVERYTHING = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), non_resource_urls=(ALL,)))


class Escalation:
    """Admission for Role, ClusterRole, RoleBinding and ClusterRoleBinding."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def admit_role(self, write: Write, obj: Obj, old: Obj | None) -> None:
        if write.operation == "DELETE" or MASTERS in write.user.groups or _same(obj, old, "rules", "aggregationRule"):
            return
        action = Action("escalate", GROUP, write.kind.plural, "", write.namespace, write.name)
        if self._authorizer.allows(write.user, action):
            return
        self._check(write, _converted(obj.get("rules") or (), tuple[Rule, ...]))
        if obj.get("aggregationRule") and self._missing(write, _EVERYTHING):
            raise self._refuse(write, "must have cluster-admin privileges to use the aggregationRule")

    async def admit_binding(self, write: Write, obj: Obj, old: Obj | None) -> None:
        if write.operation == "DELETE" or MASTERS in write.user.groups or _same(obj, old, "subjects", "roleRef"):
            return
        role = _converted(obj.get("roleRef") or {}, RoleRef)
        plural = "roles" if role.kind == "Role" else "clusterroles"
        if self._authorizer.allows(write.user, Action("bind", GROUP, plural, "", write.namespace, role.name)):
            return
        rules = self._authorizer.policy.rules(role, write.namespace)
        if rules is None:
            raise ApiError(404, "NotFound", f'{plural}.{GROUP} "{role.name}" not found')
        self._check(write, rules)

    def _missing(self, write: Write, wanted: Iterable[Rule]) -> list[Rule]:
        return uncovered(self._authorizer.ruleset(write.user, write.namespace).rules, wanted)

    def _check(self, write: Write, wanted: Iterable[Rule]) -> None:
        missing = self._missing(write, wanted)
        if missing:
            why = f"{_who(write.user)} is attempting to grant RBAC permissions not currently held:\n{describe(missing)}"
            raise self._refuse(write, why)

    @staticmethod
    def _refuse(write: Write, why: str) -> ApiError:
        return forbidden(GROUP, write.kind.plural, write.name, why)


def _converted(value: Any, type: type[T]) -> T:
    # Admission comes before validation, so what is checked here may still be malformed.
    try:
        return msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        raise bad_request(f"malformed role or binding: {error}") from None


def _same(obj: Obj, old: Obj | None, *fields: str) -> bool:
    return old is not None and all((obj.get(field) or None) == (old.get(field) or None) for field in fields)


def _who(user: User) -> str:
    groups = " ".join(f'"{group}"' for group in user.groups)
    return f'user "{user.name}" (groups=[{groups}])'
