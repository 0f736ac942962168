"""What others wrote and is shipped: listed with version, licence and hash, and unchanged."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import muster

ROOT = Path(__file__).parents[2]
VENDOR = Path(muster.__file__).parent / "dashboard" / "static" / "vendor"
LICENCES = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Apache-2.0"}
OWN = {"standalone.module.d.ts"}  # types that we wrote ourselves
ROW = re.compile(r"^\| `(?P<file>[^`]+)` \| (?P<licence>[^|]+) \| `sha256-(?P<hash>[0-9a-f]{64})` \|", re.MULTILINE)


def listed() -> dict[str, re.Match[str]]:
    return {row["file"]: row for row in ROW.finditer((ROOT / "THIRD_PARTY.md").read_text())}


def test_every_vendored_file_is_listed_with_its_hash():
    files = {
        str(path.relative_to(VENDOR)): path for path in VENDOR.rglob("*") if path.is_file() and path.name not in OWN
    }
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    assert {name: row["hash"] for name, row in listed().items()} == hashes


def test_only_licences_that_may_be_shipped_are_used():
    used = {word for row in listed().values() for word in row["licence"].strip().split(" and ")}
    assert used <= LICENCES


def test_every_folder_is_named_with_its_version_and_has_a_licence():
    folders = list(VENDOR.iterdir())
    assert folders
    for folder in folders:
        assert re.fullmatch(r"[A-Za-z]+-\d+\.\d+\.\d+", folder.name)
        assert (folder / "LICENSE").is_file()


def test_pages_ask_nothing_of_other_sites():
    pages = [
        path
        for path in VENDOR.parent.rglob("*")
        if path.suffix in (".js", ".css", ".html") and "vendor" not in path.parts
    ]
    assert pages
    for path in pages:
        text = path.read_text()
        assert not re.search(r"""(https?:)?//[a-z0-9-]+\.[a-z]{2,}""", text.replace("http://www.w3.org", "")), path.name
        assert "innerHTML" not in text, path.name
        assert "dangerouslySetInnerHTML" not in text, path.name
