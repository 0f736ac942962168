"""The same data for people and for programs."""

import json

import msgspec
import pytest
import yaml

from muster.cli import output


class Seat(msgspec.Struct, rename="camel"):
    node_name: str
    pods: tuple[str, ...] = ()


def printed(capsys: pytest.CaptureFixture[str], data: object, form: str) -> str:
    output.write(data, form, lambda: "for people")
    return capsys.readouterr().out


DATA = [Seat("n1", ("a", "b")), Seat("on")]
PLAIN = [{"nodeName": "n1", "pods": ["a", "b"]}, {"nodeName": "on", "pods": []}]


def test_structs_are_printed_as_json_and_yaml(capsys: pytest.CaptureFixture[str]):
    assert json.loads(printed(capsys, DATA, "json")) == PLAIN
    assert yaml.safe_load(printed(capsys, DATA, "yaml")) == PLAIN
    assert printed(capsys, DATA, "table") == "for people\n"


def test_nothing_to_say_prints_nothing(capsys: pytest.CaptureFixture[str]):
    output.write([], "table", lambda: "")
    assert capsys.readouterr().out == ""


def test_a_table_lines_up_and_names_what_is_missing():
    text = output.table(["name", "node"], [("training-0", None), ("b", 7), ("", 0)])
    assert text.splitlines() == ["NAME         NODE", "training-0   <none>", "b            7", "<none>       0"]


def test_remarks_go_to_stderr(capsys: pytest.CaptureFixture[str]):
    output.note("by the way")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "by the way\n")
