"""What the Health page counts: verdicts once each, evictions once a pod, waits by their length."""

from __future__ import annotations

import msgspec

from muster.api.types import Condition
from muster.dashboard import history as module
from muster.dashboard.board import Board
from muster.dashboard.history import BOUNDS, History, fragmentation
from muster.dashboard.source import fill
from muster.scheduler.interface.events import ObjectUpdated
from muster.views.schedulers import scheduler_for
from tests.build.objects import a_gang, a_node, a_pod, pods, timestamp
from tests.build.scheduler import a_world
from tests.cli.snapshots import snapshot_of


def with_condition(obj, *conditions: Condition):
    return msgspec.structs.replace(obj, status=msgspec.structs.replace(obj.status, conditions=conditions))


def test_a_verdict_is_counted_when_it_changes_and_a_wait_when_it_ends():
    members = [a_pod(f"g-{i}", group="g", node="n0", created=i) for i in range(2)]
    said = Condition("PodGroupInitiallyScheduled", "False", "Unschedulable", "", timestamp(2))
    bound = Condition("PodGroupInitiallyScheduled", "True", "Scheduled", "", timestamp(8))
    board, history = Board(), History()
    board.load((type(obj).__name__, obj) for obj in (a_node("n0"), a_gang("g", min_count=2), *members))
    for condition in (said, said, bound, bound):
        event = ObjectUpdated("PodGroup", with_condition(a_gang("g", min_count=2), condition))
        board.apply(event)
        history.observe(event, board)
    assert history.verdicts == {"Unschedulable": 1, "Scheduled": 1}
    assert history.waits[BOUNDS.index(10)] == 1  # 7 s after its last pod was created
    assert sum(history.waits) == 1


def test_an_eviction_is_counted_once():
    history, board = History(), Board()
    leaving = Condition("DisruptionTarget", "True", "PreemptionByScheduler", "for a gang", timestamp(5))
    pod = with_condition(a_pod("p", node="n0"), leaving)
    for _ in range(2):
        history.observe(ObjectUpdated("Pod", pod), board)
    assert history.evicted == 1
    assert [(each.pod, each.node, each.message) for each in history.evictions] == [("p", "n0", "for a gang")]


def test_samples_are_thinned_out_and_cover_the_whole_time(monkeypatch):
    monkeypatch.setattr(module, "MOST_SAMPLES", 10)
    board, history = Board(), History()
    board.load((type(obj).__name__, obj) for obj in (a_node("n0"), *pods(2)))
    fill(board)
    for second in range(200):
        if history.due(float(second)):
            history.sample(board, float(second))
    assert len(history.samples) <= 10
    assert history.samples[0].at == 0.0
    assert history.samples[-1].at > 150.0
    assert history.samples[0].pending_pods == 2


def test_free_devices_beside_others_are_fragmented():
    world = a_world(nodes=[a_node(f"n{i}", gpu=8) for i in range(2)])
    world.add(a_pod("p", node="n0", requests={"nvidia.com/gpu": 6}))
    assert fragmentation(scheduler_for(snapshot_of(world)).view()) == 0.2  # two of ten free devices
