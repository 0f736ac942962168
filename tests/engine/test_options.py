"""Configuration files and flags become what an engine is run with."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from muster.engine import options
from muster.engine.options import BadOption, config, election, seconds, source
from muster.scheduler.framework.plugin import Plugin

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


class Quiet(Plugin):
    """A user's own rule, for the entry point."""

    name = "Quiet"


def test_the_default_name_is_muster():
    assert list(config(source(None)).profiles) == ["muster"]


def test_names_of_the_command_line_are_served_with_the_same_profile():
    assert list(config(source(None, ["a", "b", "a"])).profiles) == ["a", "b"]


def test_a_profile_without_a_name_takes_those_of_the_command_line():
    whole = source({**HEAD, "profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}]}}}]}, ["a"])

    assert whole["profiles"][0]["schedulerName"] == "a"
    assert "plugins" in whole["profiles"][0]


def test_profiles_with_names_cannot_be_renamed_from_the_command_line():
    with pytest.raises(BadOption, match="--scheduler-name"):
        source({**HEAD, "profiles": [{"schedulerName": "mine"}]}, ["yours"])


@pytest.mark.parametrize(
    ("text", "expected"), [("15s", 15), ("1m30s", 90), ("500ms", 0.5), ("1.5h", 5400), (7, 7), (None, 3), ("", 3)]
)
def test_durations_are_read_as_kubernetes_writes_them(text: Any, expected: float):
    assert seconds("field", text, 3) == expected


@pytest.mark.parametrize("text", ["soon", "15", "15s later", "s", "-3s"])
def test_what_is_no_duration_is_refused_by_the_name_of_its_field(text: str):
    with pytest.raises(BadOption, match="field"):
        seconds("field", text, 3)


def test_election_is_on_by_default_with_the_usual_times():
    made = election({}, {})

    assert made is not None
    assert (made.lease_duration, made.renew_deadline, made.retry_period) == (15, 10, 2)
    assert (made.namespace, made.name) == ("kube-system", "muster")


def test_the_file_can_switch_election_off_and_a_flag_wins_over_it():
    off = {"leaderElection": {"leaderElect": False}}

    assert election(off, {}) is None
    assert election(off, {"leaderElect": True}) is not None


def test_two_processes_never_have_one_identity():
    first, second = election({}, {}), election({}, {})

    assert first is not None
    assert second is not None
    assert first.identity != second.identity


def test_locks_other_than_leases_are_refused():
    with pytest.raises(BadOption, match="endpoints"):
        election({"leaderElection": {"resourceLock": "endpoints"}}, {})


def test_a_users_own_constraint_is_found_by_entry_point_and_enabled_in_the_profile(monkeypatch: pytest.MonkeyPatch):
    point = EntryPoint("quiet", f"{__name__}:Quiet", options.ENTRY_POINTS)
    monkeypatch.setattr(options, "entry_points", lambda group: [point] if group == options.ENTRY_POINTS else [])
    enabled = {"multiPoint": {"enabled": [{"name": "Quiet"}]}}

    made = config(source({**HEAD, "profiles": [{"plugins": enabled}]}))

    assert "Quiet" in [rule.name for rule in made.profiles["muster"].plugins]


def test_an_entry_point_that_is_no_constraint_is_named(monkeypatch: pytest.MonkeyPatch):
    point = EntryPoint("odd", "builtins:int", options.ENTRY_POINTS)
    monkeypatch.setattr(options, "entry_points", lambda group: [point])

    with pytest.raises(BadOption, match="odd"):
        config(source(None))


def test_the_settings_of_the_scheduler_hold_for_all_names_of_the_command_line():
    section = {"name": "Muster", "args": {"budgetSteps": 7, "bindTimeoutSeconds": 9}}

    read = config(source({**HEAD, "profiles": [{"pluginConfig": [section]}]}, ["a", "b"]))

    assert list(read.profiles) == ["a", "b"]
    assert (read.budget_steps, read.bind_timeout) == (7, 9)
