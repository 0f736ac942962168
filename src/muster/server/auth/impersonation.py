"""Acting as somebody else: every part of the asked identity must be allowed by an `impersonate` rule."""

from __future__ import annotations

from urllib.parse import unquote

from muster.api.errors import bad_request
from muster.server.auth.rbac import Authorizer
from muster.server.auth.rules import Action
from muster.server.auth.service_accounts import account_groups
from muster.server.request import User

_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"


def impersonated(user: User, headers: tuple[tuple[str, str], ...], authorizer: Authorizer) -> User:
    """The user to act as; 403 for the first part of it that the caller may not take on."""
    names = [value for key, value in headers if key == "impersonate-user"]
    uids = [value for key, value in headers if key == "impersonate-uid"]
    groups = tuple(value for key, value in headers if key == "impersonate-group")
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in headers:
        if key.startswith(_EXTRA):
            word = unquote(key.removeprefix(_EXTRA))
            extra[word] = (*extra.get(word, ()), value)
    if not names or not names[0]:
        raise bad_request("impersonation of a group, uid or extra needs Impersonate-User as well")
    for action in _actions(names[0], uids, groups, extra):
        authorizer.check(user, action)
    return User(names[0], _groups(names[0], groups), uids[0] if uids else "", extra)


def _actions(name: str, uids: list[str], groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]) -> list[Action]:
    account = name.removeprefix(_ACCOUNT).split(":") if name.startswith(_ACCOUNT) else []
    if len(account) == 2:
        wanted = [Action("impersonate", "", "serviceaccounts", namespace=account[0], name=account[1])]
    else:
        wanted = [Action("impersonate", "", "users", name=name)]
    wanted += [Action("impersonate", "", "groups", name=group) for group in groups]
    wanted += [Action("impersonate", "authentication.k8s.io", "uids", name=uid) for uid in uids]
    for key, values in extra.items():
        wanted += [Action("impersonate", "authentication.k8s.io", "userextras", key, name=value) for value in values]
    return wanted


def _groups(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    account = name.removeprefix(_ACCOUNT).split(":") if name.startswith(_ACCOUNT) else []
    if not groups and len(account) == 2:
        groups = account_groups(account[0])
    everyone = "system:unauthenticated" if name == "system:anonymous" else "system:authenticated"
    return groups if everyone in groups else (*groups, everyone)
