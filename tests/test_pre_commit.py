"""What runs before a commit is what `make lint` runs."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def test_the_hooks_are_the_gates_of_make_lint() -> None:
    recipe = re.search(r"^lint: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    gates = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.group(1).splitlines()]
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["entry"] for hook in repo["hooks"]] == gates
