"""The examples in the help of every command are commands that can be typed."""

import shlex

import click
import pytest
from click.testing import CliRunner

from muster.cli.examples import EXAMPLES, Example
from muster.cli.main import COMMANDS, muster


def test_every_command_has_two_examples_at_least() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(len(examples) >= 2 for examples in EXAMPLES.values())


@pytest.mark.parametrize(
    "example", [each for examples in EXAMPLES.values() for each in examples], ids=lambda it: it.arguments
)
def test_an_example_parses(example: Example, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("decisions.jsonl", "cluster.json.gz", "job.yaml", "volcano-job.yaml", "old.yaml", "scheduler.yaml"):
        (tmp_path / name).touch()
    arguments = shlex.split(example.arguments.partition(" > ")[0])
    command: click.Command = muster
    context = click.Context(muster)
    while isinstance(command, click.Group):
        word = arguments.pop(0)
        found = command.get_command(context, word)
        assert found is not None, word
        command, context = found, click.Context(found, info_name=word, parent=context)
    command.make_context("muster", arguments)


def test_the_help_ends_with_them() -> None:
    shown = CliRunner().invoke(muster, ["queue", "--help"]).output
    assert "Examples:\n    muster queue -A\n" in shown
