"""Uids and generated names: random for a server, repeatable for a simulation."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

from muster.server.identifiers import Identifiers, RandomIdentifiers, RepeatableIdentifiers
from muster.server.store.memory import MemoryStore

PODS = "pods"


def by(kind: str, name: str, base: str = "job-") -> dict[str, Any]:
    """The metadata of an object that a controller is about to create."""
    return {"generateName": base, "ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


async def create(store: MemoryStore, name: str) -> None:
    await store.create(PODS, ("ns", name), name, lambda revision: b"{}")


@pytest.mark.parametrize(
    "make", [lambda: RandomIdentifiers(random.Random(1)), lambda: RepeatableIdentifiers(MemoryStore())]
)
def test_uids_are_version_4_and_names_have_five_letters_more(make: Any):
    identifiers: Identifiers = make()
    assert uuid.UUID(identifiers.uid(PODS, "ns", "p")).version == 4
    name = identifiers.name(PODS, "ns", {"generateName": "b" * 80})
    assert (len(name), name[:58]) == (63, "b" * 58)


async def test_one_owner_gets_the_same_names_in_the_same_order():
    names: list[list[str]] = []
    for _ in range(2):
        store = MemoryStore()
        identifiers = RepeatableIdentifiers(store)
        names.append([])
        for _ in range(50):
            names[-1].append(identifiers.name(PODS, "ns", by("Job", "a")))
            await create(store, names[-1][-1])
    assert names[0] == names[1]
    assert len(set(names[0])) == 50


async def test_what_others_create_in_between_changes_nothing():
    store = MemoryStore()
    identifiers = RepeatableIdentifiers(store)
    alone = RepeatableIdentifiers(MemoryStore()).name(PODS, "ns", by("Job", "a"))
    for kind, name in (("ReplicaSet", "a"), ("Job", "b")):
        await create(store, identifiers.name(PODS, "ns", by(kind, name)))
    assert identifiers.name(PODS, "ns", by("Job", "a")) == alone


def test_a_creation_that_is_refused_uses_up_no_name():
    identifiers = RepeatableIdentifiers(MemoryStore())
    assert identifiers.name(PODS, "ns", by("Job", "a")) == identifiers.name(PODS, "ns", by("Job", "a"))


def test_an_object_that_is_created_again_has_another_uid():
    identifiers = RepeatableIdentifiers(MemoryStore())
    assert identifiers.uid(PODS, "ns", "p") != identifiers.uid(PODS, "ns", "p")


@pytest.mark.parametrize("owners", [None, "text", [], ["text"], [{"kind": "Job"}], {"controller": True}])
def test_owner_references_that_are_no_owners_are_no_failure(owners: Any):
    identifiers = RepeatableIdentifiers(MemoryStore())
    expected = identifiers.name(PODS, "ns", {"generateName": "p-"})
    assert identifiers.name(PODS, "ns", {"generateName": "p-", "ownerReferences": owners}) == expected
