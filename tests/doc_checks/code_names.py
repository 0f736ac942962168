"""Modules, classes and files that a page names.

- `muster.a.b`, in any code, is a module or something in one; so is `a.b` where `a` is a package of `muster`.
- A path, in any code, is the end of the path of a file or directory of the repository: `cli/main.py`, `tests/api/`,
  `versions.py`. A part in capitals (`NAME.py`) stands for any name.
- A block that begins with a line that is only a directory (`src/muster/`) is a listing: each line begins with files or
  directories of the one that it is indented under.
- On the pages about the code itself, a single word between backquotes occurs in the sources.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import muster
from muster.engine.options import ENTRY_POINTS
from tests.doc_checks.markdown import Block, Page, Problem

ROOT = Path(__file__).parents[2]
TOP = ("src", "tests", "docs", "examples", "deploy", "bench", "e2e", "tools", ".ci")
OUTPUT = frozenset(("__pycache__", ".venv", ".git", "node_modules"))
SUFFIXES = (".py", ".md", ".toml")
FILES = ("yaml", "yml", "json", "fish", "log", "gz", "db")  # what may follow a dot in the name of a user's file

_DOTTED = re.compile(r"(?<![\w./@$-])muster((?:\.\w+)+)(?![\w/-])")
_OF_A_PACKAGE = re.compile(r"[a-z_]+(?:\.\w+)+")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
_WORD = re.compile(r"([A-Za-z_]\w*)(?:\(.*\))?")
_ENTRY = re.compile(r"^( *)([\w./-]+(?:, [\w./-]+)*)(?:\s{2,}|$)")


def check(page: Page, *, about_the_code: bool) -> Iterator[Problem]:
    """Every name on the page that does not exist."""
    yield from _links(page)
    yield from _modules(page)
    yield from _imports(page)
    yield from _paths(page)
    for block in page.blocks:
        if _is_listing(block):
            yield from _listing(page, block)
    if about_the_code:
        yield from _words(page)


# --- links and modules -----------------------------------------------------------------------------


def _links(page: Page) -> Iterator[Problem]:
    here = (ROOT / page.name).parent
    for line, target in page.links:
        if not (here / target).exists():
            yield page.problem(line, f"there is no {target}")


def _modules(page: Page) -> Iterator[Problem]:
    packages = {module.name for module in pkgutil.iter_modules(muster.__path__)}
    for code in page.code:
        names = [f"muster{rest}" for rest in _DOTTED.findall(code.text) if rest.split(".")[1] not in FILES]
        if code.inline and _OF_A_PACKAGE.fullmatch(code.text) and code.text.split(".")[0] in packages:
            names.append(f"muster.{code.text}")
        for name in names:
            if not (name.endswith(SUFFIXES) or resolves(name)):
                yield page.problem(code.line, f"there is no {name}")


@cache
def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    if name == ENTRY_POINTS:
        return True
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def _imports(page: Page) -> Iterator[Problem]:
    """What the Python on a page imports from `muster`."""
    for block in page.blocks:
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "muster":
                for alias in node.names:
                    if not resolves(f"{node.module}.{alias.name}"):
                        yield page.problem(block.line + node.lineno, f"there is no {node.module}.{alias.name}")


# --- paths -----------------------------------------------------------------------------------------


@cache
def _repository() -> frozenset[PurePosixPath]:
    """Every file and directory, from the top of the repository."""
    found = {Path(name) for name in TOP} | {path.relative_to(ROOT) for path in ROOT.iterdir() if path.is_file()}
    for top in TOP:
        found |= {path.relative_to(ROOT) for path in (ROOT / top).rglob("*") if not OUTPUT & set(path.parts)}
    return frozenset(PurePosixPath(path.as_posix()) for path in found)


def _is_there(path: str, under: str = "") -> bool:
    """Whether a path is the end of one of the repository's, or is directly in the directory `under`."""
    if under:
        return PurePosixPath(under, path) in _repository()
    parts = PurePosixPath(path).parts
    if any(known.parts[-len(parts) :] == parts for known in _repository()):
        return True
    return len(parts) > 1 and PurePosixPath(parts[-1]).stem.isupper() and _is_there(str(PurePosixPath(*parts[:-1])))


def _paths(page: Page) -> Iterator[Problem]:
    for code in page.code:
        words = [code.text] if code.inline else []
        words += re.findall(rf"(?<![\w./~-])(?:{'|'.join(map(re.escape, TOP))})/[\w./-]*", code.text)
        for word in dict.fromkeys(words):
            named = word.rstrip(".") if not code.inline else word
            if _PATH.fullmatch(named) and _is_path(named) and not _is_there(named):
                yield page.problem(code.line, f"there is no {named}")


def _is_path(word: str) -> bool:
    return word.endswith(("/", *SUFFIXES)) or word.split("/")[0] in TOP


# --- listings and words ----------------------------------------------------------------------------


def _is_listing(block: Block) -> bool:
    first = block.text.splitlines()[0].strip()
    return not block.language and first.endswith("/") and _PATH.fullmatch(first) is not None


def _listing(page: Page, block: Block) -> Iterator[Problem]:
    """Each line names files or directories of the directory it is indented under; `x.py` anywhere in it exists."""
    lines = block.text.splitlines()
    stack = [(-1, lines[0].strip())]
    for number, line in enumerate(lines[1:], block.line + 2):
        entry = _ENTRY.match(line)
        if entry is None:
            continue
        indent = len(entry.group(1))
        while stack[-1][0] >= indent:
            stack.pop()
        names = entry.group(2).split(", ")
        for name in names:
            if not _is_there(name, stack[-1][1]):
                yield page.problem(number, f"there is no {name} in {stack[-1][1]}")
        for name in re.findall(r"(?<![\w/.])[\w/]+\.py\b|(?<![\w/.])\w+/(?![\w/])", line[entry.end(2) :]):
            if not _is_there(name):
                yield page.problem(number, f"there is no {name}")
        if names[0].endswith("/"):
            stack.append((indent, f"{stack[-1][1]}{names[0]}"))


@cache
def words_of_the_sources() -> frozenset[str]:
    """Every word of `src/`: names, and what stands in texts."""
    texts = (path.read_text() for path in (ROOT / "src").rglob("*.py"))
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def _words(page: Page) -> Iterator[Problem]:
    for code in page.inline:
        word = _WORD.fullmatch(code.text)
        if word is not None and not word.group(1).isupper() and word.group(1) not in words_of_the_sources():
            yield page.problem(code.line, f"the sources do not have the word {word.group(1)}")
