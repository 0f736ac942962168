"""One event on a full cluster where many wait: nobody is tried whom it does not help, and one whom it does.

The crowds and events are those of `bench.wakeups`, where the time is measured.
"""

from __future__ import annotations

import pytest
from bench.wakeups import CROWDS, Crowd, FullCluster, helps_nobody, helps_one

COUNT = 40


@pytest.fixture(params=CROWDS, ids=lambda crowd: crowd.name)
def crowd(request: pytest.FixtureRequest) -> Crowd:
    return request.param


def test_an_event_that_helps_nobody_causes_no_attempt_and_one_that_helps_one_causes_one(crowd: Crowd):
    cluster = FullCluster(crowd, COUNT)
    attempts, bound, _ = cluster.after(helps_nobody(0))
    assert (attempts, bound) == (0, 0)

    attempts, bound, _ = cluster.after(helps_one(crowd))

    assert (attempts, bound > 0) == (1, True)


def test_nobody_is_tried_while_nothing_happens(crowd: Crowd):
    cluster = FullCluster(crowd, COUNT)
    before = [entity.attempts for entity in cluster.waiting]
    cluster.idle_share()
    assert [entity.attempts for entity in cluster.waiting] == before
    assert cluster.scheduler.take_missed() == 0
