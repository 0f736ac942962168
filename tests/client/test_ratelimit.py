"""The client-side rate limit."""

from muster.client.ratelimit import RateLimit


class Time:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def test_a_burst_passes_at_once_and_the_rest_at_the_rate() -> None:
    time = Time()
    limit = RateLimit(10, 5, clock=time, sleep=time.sleep)
    for _ in range(5):
        await limit.wait()
    assert time.now == 100.0
    for _ in range(10):
        await limit.wait()
    assert round(time.now, 6) == 101.0


async def test_a_quiet_time_refills_no_more_than_a_burst() -> None:
    time = Time()
    limit = RateLimit(10, 2, clock=time, sleep=time.sleep)
    time.now += 60
    for _ in range(3):
        await limit.wait()
    assert round(time.now - 160.0, 6) == 0.1


async def test_no_rate_means_no_limit() -> None:
    time = Time()
    limit = RateLimit(0, clock=time, sleep=time.sleep)
    for _ in range(1000):
        await limit.wait()
    assert time.now == 100.0
