from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.compare_decisions import compare
from tools.decision_recorder import SCHEDULER, Recorder, find, plain

from tests.build.objects import a_gang, a_node, pods
from tests.build.scheduler import a_world

ROOT = Path(__file__).parents[2]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Uninstalled before monkeypatch takes its changes back, so that both leave the scheduler as it was."""
    made = Recorder()
    made.install()
    yield made
    made.uninstall()


def a_run(recorder: Recorder, minimum: int = 2) -> dict[str, Any]:
    with recorder.recording() as recording:
        world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
        world.add(a_gang("g", minimum), *pods(minimum, "g")).wait(1)
    return recording.result()


def test_the_same_run_twice_is_equal(recorder: Recorder):
    once, again = a_run(recorder), a_run(recorder)
    assert once == again
    assert once["schedulers"] == 1
    assert once["plans"] == 1
    assert once["decisions"] >= 2


def test_another_placement_is_noticed(recorder: Recorder, monkeypatch: pytest.MonkeyPatch):
    once = a_run(recorder)
    scheduler = find(SCHEDULER)
    decide = scheduler.next
    recorder.uninstall()
    monkeypatch.setattr(scheduler, "next", lambda self, now: list(reversed(decide(self, now))))
    recorder.install()
    found = compare({"t": once}, {"t": a_run(recorder)})
    assert not found.same
    assert "hash" in found.changed["t"]


def test_other_events_are_told_apart_from_other_decisions(recorder: Recorder):
    found = compare({"t": a_run(recorder)}, {"t": a_run(recorder, minimum=3)})
    assert {"inputs", "hash", "search"} <= set(found.changed["t"])


def test_a_proof_is_compared_and_not_only_the_verdict(recorder: Recorder):
    roomy, tight = a_run(recorder, minimum=5), a_run(recorder, minimum=6)
    assert roomy["plans"] == tight["plans"]
    assert roomy["verdicts"] != tight["verdicts"]


def test_nothing_is_recorded_and_nothing_stays_wrapped_afterwards(recorder: Recorder):
    with recorder.recording() as recording:
        pass
    a_world([a_node("n0")])
    assert recording.empty
    wrapped = find(SCHEDULER).next
    recorder.uninstall()
    assert find(SCHEDULER).next is wrapped.__wrapped__


def test_values_carry_no_names_of_classes_and_sets_have_an_order():
    assert plain(({"b": 1, "a": (2, None)}, frozenset({"y", "x"}))) == [[["a", [2, None]], ["b", 1]], ["x", "y"]]
    with pytest.raises(TypeError, match="cannot compare a object"):
        plain(object())


def test_a_thing_is_found_where_it_is_and_an_error_inside_a_module_is_not_hidden(tmp_path: Path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "place_of_things.py").write_text("thing = 1")
    (tmp_path / "broken_place.py").write_text("import no_such_module_at_all")
    assert find((("place_of_things.later", "thing"), ("place_of_things", "it"), ("place_of_things", "thing"))) == 1
    with pytest.raises(LookupError, match=r"place_of_things\.it"):
        find((("place_of_things", "it"),))
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        find((("broken_place", "thing"), ("place_of_things", "thing")))


def test_moved_tests_are_found_by_name_and_missing_ones_fail():
    one, two = {"hash": "1"}, {"hash": "2"}
    old = {"a.py::test_x": one, "a.py::test_p[a::b]": one, "a.py::test_twice": one, "b.py::test_twice": one}
    new = {"c.py::T::test_x": one, "d.py::test_p[a::b]": two, "e.py::test_twice": one, "f.py::test_new": one}
    found = compare(old, new)
    assert found.equal == ["a.py::test_x"]
    assert list(found.changed) == ["a.py::test_p[a::b] -> d.py::test_p[a::b]"]
    assert found.only_old == ["a.py::test_twice", "b.py::test_twice"]
    assert found.only_new == ["e.py::test_twice", "f.py::test_new"]
    assert compare(old, old).same


PROPERTY = """
from hypothesis import given, settings, strategies as st
from tests.build.objects import a_node, pods
from tests.build.scheduler import a_world

@settings(max_examples={examples})
@given(st.integers(1, 4), st.integers(0, 6))
def test_pods_find_nodes(nodes, count):
    {line}
    a_world([a_node(f"n{{i}}") for i in range(nodes)]).add(*pods(count)).run()
"""


def recorded(folder: Path, line: str, examples: int, hash_seed: str) -> dict[str, Any]:
    (folder / "test_it.py").write_text(PROPERTY.format(line=line, examples=examples))
    command = [sys.executable, "-m", "pytest", "-p", "tools.record_decisions", "--record-decisions"]
    command += [str(folder / "out.json"), "-p", "no:cacheprovider", f"--rootdir={folder}", str(folder / "test_it.py")]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "out.json").read_text())


def test_examples_do_not_depend_on_source_settings_or_hash_seed(tmp_path: Path):
    once = recorded(tmp_path, "pass", 20, "1")
    again = recorded(tmp_path, "another = 3", 50, "2")
    assert once == again
    assert once["test_it.py::test_pods_find_nodes"]["schedulers"] > 20
