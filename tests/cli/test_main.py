"""The command line: quick to start, clear when it fails, and never a traceback."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import yaml

from muster.api.errors import ApiError
from muster.cli import exits, main
from muster.views.failures import ViewFailure


@pytest.fixture
def a_command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Run a command whose body is the given function, and give the exit code."""

    def run(body: Callable[[], object]) -> int:
        found = click.Command("odd", callback=body)
        monkeypatch.setattr(main.LazyGroup, "get_command", lambda *_: found)
        return main.run(["odd"])

    return run


def raising(error: BaseException) -> Callable[[], object]:
    def body() -> object:
        raise error

    return body


def test_help_lists_the_commands_that_exist(capsys: pytest.CaptureFixture[str]):
    assert main.run(["--help"]) == exits.OK
    shown = capsys.readouterr().out
    for name in ("validate", "migrate", "version", "completion"):
        assert name in shown


def test_every_command_that_exists_has_its_function_and_help():
    ctx = click.Context(main.muster)
    names = main.muster.list_commands(ctx)
    assert {"validate", "migrate", "version"} <= set(names)
    for name in names:
        found = main.muster.get_command(ctx, name)
        assert found is not None, name
        assert found.help, name


def test_a_command_that_does_not_exist_is_a_usage_error(capsys: pytest.CaptureFixture[str]):
    assert main.run(["nosuch"]) == exits.USAGE
    assert "No such command 'nosuch'" in capsys.readouterr().err


def test_a_wrong_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]):
    assert main.run(["version", "--colour"]) == exits.USAGE
    assert "--colour" in capsys.readouterr().err


def test_an_unexpected_error_says_where_its_details_are(
    a_command: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert a_command(raising(RuntimeError("the sky fell\nand more"))) == exits.UNEXPECTED
    shown = capsys.readouterr().err
    (details,) = tmp_path.glob("muster-error-*.txt")
    assert "RuntimeError: the sky fell" in shown
    assert str(details) in shown
    assert "Traceback" not in shown
    assert "Traceback" in details.read_text()


def test_an_unexpected_error_without_a_place_for_details_is_still_told(
    a_command: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent/place")
    assert a_command(raising(ValueError())) == exits.UNEXPECTED
    assert "no file, because none could be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (exits.Failure("no such thing", exits.BAD_INPUT), exits.BAD_INPUT, "no such thing"),
        (exits.Failure("it does not fit"), exits.NO, "it does not fit"),
        (ViewFailure("no such group"), exits.BAD_INPUT, "Error: no such group"),
        (ViewFailure("not finished", undecided=True), exits.UNDECIDED, "Error: not finished"),
        (ApiError(403, "Forbidden", "not yours"), exits.UNAVAILABLE, "not yours"),
        (ConnectionRefusedError("nobody there"), exits.UNAVAILABLE, "nobody there"),
        (TimeoutError(), exits.UNAVAILABLE, "TimeoutError"),
        (KeyboardInterrupt(), exits.INTERRUPTED, "Interrupted"),
    ],
)
def test_each_failure_has_its_exit_code(
    a_command: Callable[..., int], capsys: pytest.CaptureFixture[str], error: BaseException, code: int, words: str
):
    assert a_command(raising(error)) == code
    assert words in capsys.readouterr().err


def test_main_leaves_with_the_exit_code():
    with pytest.raises(SystemExit) as left:
        main.main(["nosuch"])
    assert left.value.code == exits.USAGE


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_version_prints_for_people_and_programs(
    capsys: pytest.CaptureFixture[str], form: str, read: Callable[[str], dict[str, str]]
):
    assert main.run(["version", "-o", form]) == exits.OK
    assert read(capsys.readouterr().out)["muster"]
    assert main.run(["version"]) == exits.OK
    assert capsys.readouterr().out.startswith("muster ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_for_shells(capsys: pytest.CaptureFixture[str], shell: str):
    assert main.run(["completion", shell]) == exits.OK
    assert "_MUSTER_COMPLETE" in capsys.readouterr().out


def muster(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "muster.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


def test_completion_completes_commands():
    found = muster(_MUSTER_COMPLETE="bash_complete", COMP_WORDS="muster val", COMP_CWORD="1")
    assert "validate" in found.stdout


def test_output_into_a_closed_pipe_ends_quietly():
    command = f"{sys.executable} -m muster.cli.main --help | true; echo ${{PIPESTATUS[0]}}"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in found.stderr
    assert "Exception" not in found.stderr


def cpu_of(*arguments: str) -> float:
    """The CPU seconds of the quickest of a few runs; the machine may be busy with something else."""
    costs: list[float] = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        muster(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(costs)


@pytest.mark.parametrize("arguments", [("--help",), ("version",)])
def test_simple_commands_start_quickly(arguments: tuple[str, ...]):
    assert cpu_of(*arguments) < 2 * 0.3  # twice the mark, for a busy machine


def test_commands_that_read_files_are_quick(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n")
    assert cpu_of("validate", "-f", str(path)) < 2 * 0.45
    assert cpu_of("migrate", "-f", str(path)) < 2 * 0.45
