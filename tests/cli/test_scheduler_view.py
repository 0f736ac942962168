"""Commands read a scheduler through its view."""

from __future__ import annotations

import ast
from pathlib import Path

CLI = Path(__file__).parents[2] / "src" / "muster" / "cli"


def test_the_command_line_reads_a_scheduler_through_its_view_only():
    reads = [
        f"{path.name}:{node.lineno}"
        for path in CLI.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("world", "state", "forest", "cluster")
    ]
    assert reads == []
