"""Commands and flags that a page names: every `muster …`, every flag, every `make` target, every `python -m`.

A flag on its own between backquotes belongs to the commands that its section names, if the section's heading names a
command, and else to any command of `muster` or to a module that the page runs with `python -m`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

import click

from muster.cli.main import muster
from tests.doc_checks.code_names import ROOT
from tests.doc_checks.markdown import Code, Page, Problem

_CALL = re.compile(r"(?<![\w./:-])(?:kubectl |\.venv/bin/)?muster(?=\s)(.*)")
_END = re.compile(r"\s\|\s|\s#|>|\)|&&|;|│")
_MAKE = re.compile(r"(?<![\w./-])make ([a-z0-9][a-z0-9-]*)")
_MODULE = re.compile(r"python3? -m ([\w.]+)")
_AROUND = "[](){}`,.;:…\"'"
_HELP = ("--help", "-h")


def check(page: Page) -> Iterator[Problem]:
    """Every command, flag and target on the page that does not exist."""
    for code in page.code:
        for words in calls(code.text):
            for text in _wrong(words):
                yield page.problem(code.line, text)
        for target in _MAKE.findall(code.text):
            if target not in _targets():
                yield page.problem(code.line, f"the Makefile has no target {target}")
        for module in _MODULE.findall(code.text):
            if _source(module) is None and not _is_installed(module):
                yield page.problem(code.line, f"there is no module {module} to run")
    for code in page.inline:
        if code.text.startswith("-") and not _is_known(page, code):
            yield page.problem(code.line, f"no command here has the flag {_flag(code.text)}")


def _is_installed(module: str) -> bool:
    """Whether somebody else's package has the module."""
    package = module.partition(".")[0]
    return not (ROOT / package).is_dir() and find_spec(package) is not None


# --- whole commands --------------------------------------------------------------------------------


def calls(text: str) -> Iterator[list[str]]:
    """The words after `muster`, of every call in a line."""
    for found in _CALL.finditer(text):
        rest = _END.split(found.group(1), maxsplit=1)[0]
        yield [word for raw in rest.split() if (word := raw if raw == "-" else raw.strip(_AROUND))]


def _wrong(words: list[str]) -> Iterator[str]:
    """What is wrong with a call, by the tree of commands and their options."""
    command: click.Command = muster
    waiting = iter(words)
    for word in waiting:
        if word.startswith("-") and word != "-":
            yield from _wrong_option(command, word, waiting)
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                if not _is_placeholder(word):
                    yield f"there is no command {_path(command)} {word}".replace("  ", " ")
                return
            command = found
        else:
            yield from _wrong_argument(command, word)


def _wrong_option(command: click.Command, word: str, waiting: Iterator[str]) -> Iterator[str]:
    name, equals, value = word.partition("=")
    if name in _HELP:
        return
    option = next((each for each in command.params if name in (*each.opts, *each.secondary_opts)), None)
    if option is None:
        yield f"{_path(command)} has no flag {name}"
        return
    if isinstance(option, click.Option) and (option.is_flag or option.count):
        return
    yield from _wrong_value(option, value if equals else next(waiting, ""))


def _wrong_argument(command: click.Command, word: str) -> Iterator[str]:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    if not arguments:
        yield f"{_path(command)} takes no {word}"
    for argument in arguments:
        yield from _wrong_value(argument, word)


def _wrong_value(param: click.Parameter, value: str) -> Iterator[str]:
    if isinstance(param.type, click.Choice):
        for choice in value.split("|"):
            if choice not in param.type.choices and not _is_placeholder(choice):
                yield f"{param.opts[0]} cannot be {choice}"


def _path(command: click.Command) -> str:
    return "muster" if command is muster else f"muster {command.name}"


def _is_placeholder(word: str) -> bool:
    return word.isupper() or word == "…"


# --- flags on their own ----------------------------------------------------------------------------


def _flag(text: str) -> str:
    return re.split(r"[\s=\[]", text)[0]


def _is_known(page: Page, code: Code) -> bool:
    flag = _flag(code.text)
    if flag == "-" or flag in _HELP:
        return True
    if any(True for _ in calls(code.section)):
        named = [words for each in page.code if each.section == code.section for words in calls(each.text)]
        return any(flag in _flags(tuple(words)) for words in (*calls(code.section.replace("`", " ")), *named))
    runs = {module for each in page.code for module in _MODULE.findall(each.text)}
    return flag in _all_flags() or any(f'"{flag}"' in (_source(module) or "") for module in runs)


@cache
def _flags(words: tuple[str, ...]) -> frozenset[str]:
    """The flags of the command that a call names."""
    command: click.Command = muster
    for word in words:
        found = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if found is None:
            break
        command = found
    return frozenset(flag for param in command.params for flag in (*param.opts, *param.secondary_opts))


@cache
def _all_flags() -> frozenset[str]:
    def under(command: click.Command, *names: str) -> Iterator[str]:
        yield from _flags(names)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from under(found, *names, name)

    return frozenset(under(muster))


@cache
def _targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@cache
def _source(module: str) -> str | None:
    """The text of a module that can be run from the top of the repository."""
    for top in (ROOT, ROOT / "src"):
        path = top.joinpath(*module.split("."))
        for place in (path.with_suffix(".py"), path / "__main__.py"):
            if place.exists():
                return place.read_text()
    return None
