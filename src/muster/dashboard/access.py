"""What a viewer may see: by kind and namespace, as the API server says.

Whoever runs the dashboard on their own machine sees what their own credentials can watch. In a cluster each viewer is
looked up with SubjectAccessReviews, whose answers are kept for a minute; an answer that cannot be had means no.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from muster.api.errors import ApiError
from muster.api.groups import GROUP
from muster.client.protocol import Client, Obj
from muster.scheduler.interface.keys import EntityKey

KEPT_SECONDS = 60.0
RESOURCES = {
    "Node": ("", "nodes"),
    "Pod": ("", "pods"),
    "PodGroup": (GROUP, "podgroups"),
    "CompositePodGroup": (GROUP, "compositepodgroups"),
    "Event": ("events.k8s.io", "events"),
}
"""The kinds that pages show. A gang of another kind (a ReplicaSet, say) is shown as its pods."""


@dataclass(frozen=True, slots=True)
class Rights:
    """A viewer's rights at one time. Kinds in `everywhere` may be read in all namespaces."""

    everywhere: frozenset[str] = frozenset(RESOURCES)
    namespaces: frozenset[tuple[str, str]] = frozenset()  # (kind, namespace)

    def may_see(self, kind: str, namespace: str = "") -> bool:
        """Whether objects of a kind may be listed in a namespace."""
        named = kind if kind in RESOURCES else "Pod"
        return named in self.everywhere or (named, namespace) in self.namespaces

    def may_see_gang(self, key: EntityKey) -> bool:
        """Whether the name of a gang may be shown: its kind and its pods must be readable."""
        return self.may_see(key.kind, key.namespace) and self.may_see("Pod", key.namespace)


ALL = Rights()


class Access(Protocol):
    """Gives a viewer's rights. The namespaces are asked for only where they matter."""

    async def rights(self, namespaces: Callable[[], Iterable[str]]) -> Rights: ...


class FullAccess:
    """The viewer is the user whose credentials the dashboard uses."""

    async def rights(self, namespaces: Callable[[], Iterable[str]]) -> Rights:
        return ALL


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who a token belongs to, as a TokenReview says."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(slots=True)
class ReviewedAccess:
    """The rights of one viewer, asked of the API server."""

    client: Client
    viewer: Viewer
    now: Callable[[], float]
    group: str = GROUP  # the API group that serves PodGroups here
    _answers: dict[tuple[str, str], tuple[float, bool]] = field(
        default_factory=dict[tuple[str, str], tuple[float, bool]]
    )

    async def rights(self, namespaces: Callable[[], Iterable[str]]) -> Rights:
        kinds = list(RESOURCES)
        answers = await asyncio.gather(*(self._may(kind, "") for kind in kinds))
        everywhere = frozenset(kind for kind, yes in zip(kinds, answers, strict=True) if yes)
        asked: list[tuple[str, str]] = []
        if len(everywhere) < len(kinds):
            places = sorted(set(namespaces()))
            asked = [(kind, each) for kind in kinds if kind not in everywhere and kind != "Node" for each in places]
        found = await asyncio.gather(*(self._may(*each) for each in asked))
        return Rights(everywhere, frozenset(each for each, yes in zip(asked, found, strict=True) if yes))

    async def _may(self, kind: str, namespace: str) -> bool:
        known = self._answers.get((kind, namespace))
        if known is not None and self.now() - known[0] < KEPT_SECONDS:
            return known[1]
        try:
            answer = await self._ask(kind, namespace)
        except (ApiError, ConnectionError, TimeoutError):
            return False
        self._answers[kind, namespace] = (self.now(), answer)
        return answer

    async def _ask(self, kind: str, namespace: str) -> bool:
        group, plural = RESOURCES[kind]
        attributes: Obj = {"verb": "list", "group": self.group if group == GROUP else group, "resource": plural}
        if namespace:
            attributes["namespace"] = namespace
        who = self.viewer
        spec: Obj = {"user": who.name, "uid": who.uid, "groups": list(who.groups), "resourceAttributes": attributes}
        if who.extra:
            spec["extra"] = {key: list(values) for key, values in who.extra}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = await self.client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
        status: Obj = answer.get("status") or {}
        return bool(status.get("allowed"))


async def review_token(client: Client, token: str) -> Viewer | None:
    """Whose token this is; None if the API server does not know it."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = await client.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    status: Obj = answer.get("status") or {}
    if not status.get("authenticated"):
        return None
    user: Obj = status.get("user") or {}
    extra: dict[str, list[str]] = user.get("extra") or {}
    return Viewer(
        str(user.get("username") or ""),
        str(user.get("uid") or ""),
        tuple(user.get("groups") or ()),
        tuple((key, tuple(values)) for key, values in sorted(extra.items())),
    )
