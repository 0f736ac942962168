"""The checkers complain about what is wrong, each about its own invariant, and about nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from muster.server.request import Request
from tests.simulation.history import Entry, WatchSession
from tests.simulation.invariants import CANARY
from tests.simulation.network import Channel, Exchange, SimClient
from tests.simulation.world import World


class Record:
    """A world in which nothing runs, and whose history a test writes."""

    def __init__(self) -> None:
        self.world = World(1, [])
        self.world.kind = "stormy"
        self.history = self.world.history
        self.wrong = self.world.outcome.complaints
        self.say_node("n0", "4")

    def client(self, name: str, identity: str = "") -> SimClient:
        return SimClient(self.world.network, name, identity or f"{name}-1")

    def exchange(self, client: SimClient, method: str = "PATCH", path: str = "/api/v1/pods") -> Exchange:
        made = Exchange.__new__(Exchange)
        made.client, made.request = client, Request(method, path)
        made.sent_at, made.revision_before = self.world.loop.now, self.history.revision
        return made

    def say(self, table: str, obj: dict[str, Any], kind: str = "MODIFIED", by: Exchange | None = None) -> Entry:
        """The next revision."""
        revision = self.history.revision + 1
        self.world.loop.now += 0.1
        meta = obj["metadata"]
        meta.setdefault("uid", f"uid-{meta['name']}")
        meta["resourceVersion"] = str(revision)
        self.history._origins[revision] = by
        key = (table, meta.get("namespace", ""), meta["name"])
        if kind == "MODIFIED" and key not in self.history.keys:
            kind = "ADDED"
        self.history._add(revision, kind, key, msgspec.json.encode(obj))
        return self.history.log[-1]

    def say_node(self, name: str, cpu: str, **spec: Any) -> None:
        self.say("nodes", {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": {"cpu": cpu}}})

    def say_pod(
        self, name: str, node: str = "", by: Exchange | None = None, kind: str = "MODIFIED", **more: Any
    ) -> None:
        container = {"resources": {"requests": {"cpu": more.pop("cpu", "2")}}}
        meta = {"name": name, "namespace": "default", **more.pop("meta", {})}
        spec = {"containers": [container], "nodeName": node, **more.pop("spec", {})}
        if group := more.pop("group", ""):
            spec["schedulingGroup"] = {"podGroupName": group}
        self.say("pods", {"metadata": meta, "spec": spec, "status": {"phase": "Pending", **more}}, kind, by)

    def say_group(self, name: str, minimum: int, **spec: Any) -> None:
        policy = {"gang": {"minCount": minimum}}
        self.say(
            "podgroups.scheduling.k8s.io",
            {"metadata": {"name": name, "namespace": "default"}, "spec": {"schedulingPolicy": policy, **spec}},
        )

    def leads(self, identity: str) -> None:
        meta = {"name": "muster", "namespace": "kube-system"}
        self.say("leases.coordination.k8s.io", {"metadata": meta, "spec": {"holderIdentity": identity}})

    def engine(self, identity: str = "a-1", *, up_to_date: bool = True) -> Exchange:
        """A request of a scheduler that has seen everything, or nothing."""
        client = self.client(identity[0], identity)
        if up_to_date:
            for table in ("pods", "nodes"):
                self.history.saw(identity, table, self.history.revision)
        return self.exchange(client)


@pytest.fixture
def record() -> Iterator[Record]:
    made = Record()
    yield made
    made.world.loop.shut_down()


def test_a_good_bind_is_nothing_to_complain_about(record: Record):
    record.leads("a-1")
    record.say_pod("p")
    record.say_pod("p", "n0", by=record.engine())
    assert record.wrong == []


def test_i2_more_than_a_node_offers(record: Record):
    record.leads("a-1")
    for name in "pqr":
        record.say_pod(name)
    for name in "pq":
        record.say_pod(name, "n0", by=record.engine())
    assert record.wrong == []
    record.say_pod("r", "n0", by=record.engine())
    assert "I2" in record.wrong[0]


def test_i2_does_not_blame_for_what_another_scheduler_bound_unseen(record: Record):
    record.leads("a-1")
    for name in "pqr":
        record.say_pod(name)
    late = record.engine()
    foreign = record.exchange(record.client("foreign"))
    for name in "pq":
        record.say_pod(name, "n0", by=foreign)
    record.say_pod("r", "n0", by=late)
    assert record.wrong == []


def test_i2_what_is_known_counts_when_a_bind_is_sent_again(record: Record):
    record.leads("a-1")
    for name in "pqr":
        record.say_pod(name)
    body = msgspec.json.encode({"metadata": {"uid": "uid-r"}, "target": {"name": "n0"}})
    put_off = record.engine()
    put_off.request = Request("POST", "/api/v1/namespaces/default/pods/r/binding", {}, {}, body)
    record.world.invariants.sent(put_off)
    foreign = record.exchange(record.client("foreign"))
    for name in "pq":
        record.say_pod(name, "n0", by=foreign)
    record.say_pod("r", "n0", by=record.engine())
    assert "I2" in record.wrong[0]


def test_i7_a_pod_that_moves(record: Record):
    record.say_pod("p")
    record.say_pod("p", "n0")
    record.say_pod("p", "n1")
    assert "I7" in record.wrong[0]


def test_i7_a_node_that_was_cordoned_long_before(record: Record):
    record.leads("a-1")
    record.say_pod("p")
    record.say_node("n0", "4", unschedulable=True)
    record.engine()
    record.world.loop.now += 30.0
    record.say_pod("p", "n0", by=record.engine())
    assert "cordoned" in record.wrong[0]


def test_i8_a_write_of_somebody_who_does_not_lead(record: Record):
    record.leads("a-1")
    record.say_pod("p")
    late = record.engine()
    record.leads("b-1")
    record.say_pod("p", meta={"labels": {"x": "1"}}, by=late)
    assert record.wrong == [], "it was sent while it led"
    record.say_pod("p", meta={"labels": {"x": "2"}}, by=record.engine())
    assert "I8" in record.wrong[0]


def test_i1_a_gang_that_is_bound_in_part(record: Record):
    record.leads("a-1")
    record.say_group("g", 2)
    for name in ("g-0", "g-1"):
        record.say_pod(name, group="g", cpu="1")
    record.say_pod("g-0", "n0", by=record.engine(), group="g", cpu="1")
    assert record.world.invariants.partial_groups() == ["g"]
    record.world.invariants.review()
    record.world.loop.now += 31.0
    record.world.invariants.review()
    assert "I1" in record.wrong[0]


def test_i1_not_a_gang_that_lost_a_member_or_whose_minimum_was_raised(record: Record):
    record.leads("a-1")
    record.say_group("g", 2)
    for name in ("g-0", "g-1"):
        record.say_pod(name, group="g", cpu="1")
    for name in ("g-0", "g-1"):
        record.say_pod(name, "n0", by=record.engine(), group="g", cpu="1")
    record.say_pod("g-0", "n0", group="g", cpu="1", kind="DELETED")
    record.say_group("g", 3)
    assert record.world.invariants.partial_groups() == []


def test_i11_an_eviction_without_a_mark_or_without_a_reason(record: Record):
    record.leads("a-1")
    going = {"deletionTimestamp": "2027-01-01T00:00:00Z"}
    mark = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    for name in ("p", "q"):
        record.say_pod(name)
        record.say_pod(name, "n0", by=record.engine())
    record.say_pod("p", "n0", by=record.engine(), meta=going)
    assert "without a mark" in record.wrong[0]
    record.say_pod("q", "n0", by=record.engine(), **mark)
    record.say_pod("q", "n0", by=record.engine(), meta=going, **mark)
    assert "nobody more important" in record.wrong[1]


def test_i11_not_a_victim_of_somebody_more_important(record: Record):
    record.leads("a-1")
    mark = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    record.say_pod("p")
    record.say_pod("p", "n0", by=record.engine())
    record.say_pod("important", spec={"priority": 100})
    record.say_pod("p", "n0", by=record.engine(), **mark)
    record.say_pod("p", "n0", by=record.engine(), meta={"deletionTimestamp": "2027-01-01T00:00:00Z"}, **mark)
    assert record.wrong == []


@pytest.mark.parametrize(("minimum", "complaints"), [(2, 0), (1, 1)])
def test_i11_what_somebody_else_bound_is_given_back_unmarked_below_the_minimum(
    record: Record, minimum: int, complaints: int
):
    record.leads("a-1")
    record.say_group("g", minimum)
    for name in ("g-0", "g-1"):
        record.say_pod(name, group="g")
    record.say_pod("g-0", "n0", by=record.exchange(record.client("foreign")), group="g")
    assert record.world.invariants.partial_groups() == []  # not our doing
    going = {"deletionTimestamp": "2027-01-01T00:00:00Z"}
    record.say_pod("g-0", "n0", by=record.engine(), group="g", meta=going)
    assert len([each for each in record.wrong if "without a mark" in each]) == len(record.wrong) == complaints


@pytest.mark.parametrize(
    ("root", "other", "complaints"),
    [
        ({"priority": 0}, 0, 0),  # names no class: the tree has the lowest priority of its pods
        ({"priority": 0}, 100, 1),
        ({"priority": 100, "priorityClassName": "important"}, 0, 1),  # the class counts, whatever the pods say
    ],
)
def test_i11_the_priority_of_a_victim_is_that_of_its_tree(record: Record, root: Any, other: int, complaints: int):
    record.leads("a-1")
    mark = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    going = {"deletionTimestamp": "2027-01-01T00:00:00Z"}
    record.say_group("g", 1, **root)
    record.say_pod("g-other", group="g", spec={"priority": other})
    record.say_pod("p", group="g", spec={"priority": 100})
    record.say_pod("p", "n0", by=record.engine(), group="g", spec={"priority": 100})
    record.say_pod("important", spec={"priority": 100})
    record.say_pod("p", "n0", by=record.engine(), group="g", spec={"priority": 100}, **mark)
    record.say_pod("p", "n0", by=record.engine(), group="g", spec={"priority": 100}, meta=going, **mark)
    assert len([each for each in record.wrong if "nobody more important" in each]) == len(record.wrong) == complaints


def test_i13_a_secret_in_another_object(record: Record):
    record.say("secrets", {"metadata": {"name": "s"}, "data": CANARY.decode()})
    assert record.wrong == []
    record.say_pod("p", meta={"annotations": {"x": CANARY.decode()}})
    assert "I13" in record.wrong[0]


def test_i3_an_acknowledged_write_that_is_not_in_the_log(record: Record):
    record.say_pod("p")
    exchange = record.exchange(record.client("users"), "PUT", "/api/v1/namespaces/default/pods/p")
    body = {"kind": "Pod", "metadata": {"name": "p", "namespace": "default", "resourceVersion": "3"}}
    record.history.answered(exchange, 200, msgspec.json.encode(body))
    assert record.wrong == []
    body["metadata"]["resourceVersion"] = "4"
    record.history.answered(exchange, 200, msgspec.json.encode(body))
    assert "I3" in record.wrong[0]


def test_i4_a_stale_read_and_a_wrong_list(record: Record):
    record.say_pod("p")
    record.say_pod("p", "n0")
    users = record.client("users")
    get = record.exchange(users, "GET", "/api/v1/namespaces/default/pods/p")
    old = {"metadata": {"name": "p", "resourceVersion": "3"}}
    record.history.answered(get, 200, msgspec.json.encode(old))
    assert "stale" in record.wrong[0]
    listing = record.exchange(users, "GET", "/api/v1/pods")
    record.history.answered(listing, 200, msgspec.json.encode({"metadata": {"resourceVersion": "4"}, "items": []}))
    assert "wrong about" in record.wrong[1]


def test_i4_a_revision_that_is_left_out(record: Record):
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}, "status": {}}
    record.history._add(record.history.revision + 2, "ADDED", ("pods", "default", "p"), msgspec.json.encode(pod))
    assert "I4" in record.wrong[0]


def a_watch(record: Record, start: int) -> Channel:
    channel = Channel(record.world.network, record.exchange(record.client("a"), "GET", "/api/v1/pods"))
    record.history._sessions[channel] = WatchSession("pods", start, True)
    return channel


def test_i5_a_watch_that_shows_everything_once_and_in_order(record: Record):
    start = record.history.revision
    for name in "pqr":
        record.say_pod(name)
    watch = a_watch(record, start)
    for revision in range(start + 1, start + 4):
        record.history.watched(watch, "ADDED", str(revision))
    record.history.watched(watch, "BOOKMARK", str(start + 3))
    assert record.wrong == []


@pytest.mark.parametrize("shown", [[2], [1, 1], [1, 3], [2, 1]])
def test_i5_gaps_and_repetitions(record: Record, shown: list[int]):
    start = record.history.revision
    for name in "pqr":
        record.say_pod(name)
    watch = a_watch(record, start)
    for number in shown:
        record.history.watched(watch, "ADDED", str(start + number))
    assert "I5" in record.wrong[0]


def test_i5_a_bookmark_that_comes_too_early_and_a_wrong_type(record: Record):
    start = record.history.revision
    record.say_pod("p")
    record.history.watched(a_watch(record, start), "BOOKMARK", str(start + 1))
    record.history.watched(a_watch(record, start), "MODIFIED", str(start + 1))
    assert [text.split()[1] for text in record.wrong] == ["I5", "I5"]
