"""Only suggestions that help are made."""

from __future__ import annotations

import pytest

from tests.build.objects import a_node, a_pod
from tests.build.scheduler import a_world
from tests.build.suggestions import a_stuck_rack_gang, carry_out, suggested, the


@pytest.mark.parametrize("action", ["widen-topology", "lower-minimum", "add-nodes"])
def test_what_is_suggested_for_a_gang_that_is_too_large_for_a_rack_helps(action: str):
    world = a_stuck_rack_gang()
    hint = the(action, suggested(world, "PodGroup", "g"))
    carry_out(world, hint)
    assert len(world.bound("g")) >= int(hint.details.get("minCount", 6))


def test_nothing_is_suggested_that_does_not_help():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("p", cpu=64)).run()
    assert suggested(world, "Pod", "p") == []
