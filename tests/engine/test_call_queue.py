"""The call queue: order within an object, barriers between objects, limits overall."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.api_calls.call import BIND, EVENT, STATUS, ApiCall, Barrier
from muster.engine.call_queue import CallQueue, ConcurrencyLimits
from tests.build.examples import examples


class Step(ApiCall):
    """A call that takes a few turns of the event loop and notes when it began and ended."""

    def __init__(self, name: str, rank: int, turns: int, log: list[tuple[str, int]], number: int, error: str = ""):
        super().__init__(("Pod", "default", name))
        self.rank = rank
        self.turns = turns
        self.log = log
        self.number = number
        self.result = error

    async def run(self) -> str:
        self.log.append(("began", self.number))
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.log.append(("ended", self.number))
        return self.result


def crash(error: BaseException) -> None:
    raise AssertionError from error


a_step = st.tuples(st.sampled_from("abc"), st.sampled_from([BIND, STATUS, EVENT]), st.integers(0, 3), st.booleans())


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(a_step, min_size=1, max_size=20))
def test_calls_to_one_object_never_overlap_and_keep_their_order(steps: list[tuple[str, int, int, bool]]):
    log: list[tuple[str, int]] = []

    async def run() -> list[tuple[int, set[int]]]:
        queue = CallQueue(ConcurrencyLimits(binds=3, statuses=2, events=1), crash)
        made: list[Step] = []
        guarded: list[tuple[int, set[int]]] = []
        for number, (name, rank, turns, guard) in enumerate(steps):
            step = Step(name, rank, turns, log, number)
            barrier = Barrier(made) if guard else None
            if guard:
                guarded.append((number, {each.number for each in made}))
            queue.submit(step, barrier)
            made.append(step)
            if number % 3 == 0:
                await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await queue.settled()
        assert queue.pending() == 0
        return guarded

    guarded = asyncio.run(run())

    for name in "abc":
        mine = [entry for entry in log if steps[entry[1]][0] == name]
        assert mine == sorted(mine, key=lambda entry: (entry[1], entry[0] == "ended"))
    for number, before in guarded:
        began = log.index(("began", number))
        assert all(log.index(("ended", other)) < began for other in before)
    running = {BIND: 0, STATUS: 0, EVENT: 0}
    for what, number in log:
        running[steps[number][1]] += 1 if what == "began" else -1
        assert running[BIND] <= 3
        assert running[STATUS] <= 2
        assert running[EVENT] <= 1


async def test_a_barrier_knows_who_failed_before_and_after_it_was_put_up():
    log: list[tuple[str, int]] = []
    queue = CallQueue(ConcurrencyLimits(), crash)
    early = Step("a", STATUS, 0, log, 1, error="early")
    queue.submit(early)
    await queue.settled()
    late = Step("b", STATUS, 3, log, 2, error="late")
    queue.submit(late)

    barrier = Barrier([early, late])
    await queue.settled()

    assert barrier.open
    assert barrier.errors == ["early", "late"]


async def test_what_is_under_way_ends_with_an_abort_and_the_rest_never_starts():
    log: list[tuple[str, int]] = []
    queue = CallQueue(ConcurrencyLimits(binds=1), crash)
    for number in range(3):
        queue.submit(Step(f"p{number}", BIND, 1000, log, number))
    await asyncio.sleep(0)

    await queue.cancel()

    assert log == [("began", 0)]
    assert queue.submit(Step("late", BIND, 0, log, 9)) is None
