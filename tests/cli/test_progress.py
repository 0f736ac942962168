"""Bars and watched screens: on a terminal, over a second, and never in the way of the answer."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from muster.cli import live, progress
from muster.cli.progress import Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_without_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    with progress.shown() as bar:
        assert list(bar.over([1, 2, 3], "Counting")) == [1, 2, 3]
    assert capsys.readouterr() == ("", "")


def test_quick_work_draws_nothing_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress.shown() as bar:
        list(bar.over([1, 2, 3], "Counting"))
    assert terminal.getvalue() == ""


def test_long_work_draws_a_bar_and_wipes_it(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress.shown() as bar:
        bar.stage("Reading the cluster")
        bar.show()
        assert list(bar.through(range(600), "Taking it in", 600)) == list(range(600))
    drawn = terminal.getvalue()
    assert "Taking it in" in drawn
    assert drawn.endswith("\x1b[2K"), "the line is left empty"


def test_a_bar_that_is_not_shown_costs_nothing_but_counting():
    assert list(Bar().through(iter("abc"), "Spelling", 3)) == ["a", "b", "c"]


def test_ctrl_c_ends_a_watch_and_is_no_failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    screens = iter(["first", "second"])

    def sleep(seconds: float) -> None:
        if not remaining:
            raise KeyboardInterrupt
        remaining.pop()

    remaining = [1]
    monkeypatch.setattr(live.time, "sleep", sleep)
    live.show(lambda: next(screens), watch=True)
    assert capsys.readouterr().out == "first\n\nsecond\n\n"


def test_a_watch_outlives_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    answers = _answers()
    turns = [1, 2, 3]

    def sleep(seconds: float) -> None:
        if not turns:
            raise KeyboardInterrupt
        turns.pop()

    monkeypatch.setattr(live.time, "sleep", sleep)
    live.show(lambda: next(answers)(), watch=True)
    drawn = terminal.getvalue()
    assert "all is well" in drawn
    assert "the server does not answer since" in drawn
    assert "well again" in drawn


def _answers() -> Iterator:
    def fail() -> str:
        raise ConnectionError("refused")

    yield lambda: "all is well"
    yield fail
    while True:
        yield lambda: "well again"
