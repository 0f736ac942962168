"""Options of a command as one typed value."""

from __future__ import annotations

from dataclasses import dataclass

import click
from click.testing import CliRunner

from muster.cli.option_groups import grouped


@dataclass(frozen=True, slots=True)
class Size:
    width: int
    height: int


size = grouped(
    "size", Size, click.option("--width", type=int, default=1), click.option("--height", type=int, default=2)
)


@click.command()
@size
@click.option("--name", default="box")
def command(size: Size, name: str) -> None:
    click.echo(f"{name} {size}")


def test_the_fields_of_the_group_come_as_one_object_and_the_rest_as_before():
    result = CliRunner().invoke(command, ["--height", "5", "--name", "door"])
    assert result.output == "door Size(width=1, height=5)\n"


def test_the_options_are_listed_in_the_order_in_which_they_are_given():
    assert [param.name for param in command.params] == ["width", "height", "name"]


def test_a_group_can_hold_another_group():
    @dataclass(frozen=True, slots=True)
    class Everything:
        size: Size
        name: str

    @click.command()
    @size
    @click.option("--name", default="box")
    @grouped("options", Everything)
    def whole(options: Everything) -> None:
        click.echo(options)

    assert "Everything(size=Size(width=3, height=2), name='box')" in CliRunner().invoke(whole, ["--width", "3"]).output
