"""The documentation names nothing that does not exist: modules, files, commands, flags, fields, metrics."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Set
from functools import cache
from pathlib import Path

import pytest

from muster.cli.main import COMMANDS
from muster.testing import api_server
from tests.doc_checks import code_names, commands, coverage, fields
from tests.doc_checks.code_names import ROOT
from tests.doc_checks.markdown import Page

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
ABOUT_THE_CODE = ("docs/architecture.md", "CONTRIBUTING.md")


@pytest.fixture(scope="module")
def metrics() -> Set[str]:
    """The names of everything that a running scheduler exports."""
    return asyncio.run(_exported())


async def _exported() -> Set[str]:
    async with api_server(scheduler=True) as plane:
        status, body = await plane.api.core.ask("GET", "/metrics", {}, b"", "")
    assert status == 200
    names = re.findall(r"^# TYPE (\w+) \w+$", body.decode(), re.MULTILINE)
    return frozenset(name for name in names if not name.endswith("_created"))


@cache
def page_of(path: Path) -> Page:
    return Page.read(ROOT, path)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_name_on_the_page_exists(path: Path, metrics: Set[str]):
    page = page_of(path)
    problems = [
        *code_names.check(page, about_the_code=page.name in ABOUT_THE_CODE),
        *commands.check(page),
        *fields.check(page, metrics),
    ]
    assert "\n".join(str(problem) for problem in problems) == ""


def test_every_metric_is_documented(metrics: Set[str]):
    page = page_of(ROOT / "docs" / "metrics.md")
    tables = [table for table in page.tables if table.header[0].startswith("name (prefix")]
    documented = {name for table in tables for _, name in fields.documented_metrics(table)}
    documented |= {code.text.partition("{")[0] for code in page.inline}
    assert sorted(metrics - documented) == []


def test_every_command_is_documented():
    named = {
        words[0] for code in page_of(ROOT / "docs" / "cli.md").code for words in commands.calls(code.text) if words
    }
    assert sorted(set(COMMANDS) - named) == []


def test_every_module_file_and_test_of_the_statements_exists():
    assert "\n".join(coverage.problems((ROOT / "docs" / "coverage.md").read_text())) == ""


# --- the checks themselves: small pages that are wrong ---------------------------------------------

METRICS = frozenset(("scheduler_pending_pods", "scheduler_schedule_attempts_total"))


def wrong(text: str, *, about_the_code: bool = True) -> list[str]:
    """What the checks say of a page, with the lines."""
    page = Page("docs/wrong.md", text)
    found = [
        *code_names.check(page, about_the_code=about_the_code),
        *commands.check(page),
        *fields.check(page, METRICS),
    ]
    return [f"{problem.line}: {problem.text}" for problem in found]


RIGHT = """# A page
`muster.cli.main`, `muster.cli.exits.Failure`, `cli.main`, `cli/main.py`, `src/muster/cli/NAME.py`, `main.py`,
`tests/cli/`, [the commands](cli.md), `Failure`, `run(arguments)`; `topology.muster.dev/rack`,
`muster.dev/run-seconds`, `scheduler_`.

    muster simulate -f job.yaml --nodes 8   # a comment --with-flags
    muster snapshot > muster.yaml

## `muster migrate -f FILE… [--to native|crd]`
`--to crd`, `-R`, `--help`, `muster completion bash`, `kubectl muster …`, `muster COMMAND --help`, `make test`.

## Listing
```
src/muster/
  cli/         commands; main.py: the table of them
    exits.py, main.py   codes
```

| field of the configuration | meaning |
|---|---|
| `podMaxBackoffSeconds`, `profiles[].schedulerName` | |
| `pluginConfig[NodeResourcesFit].args` | |

| name (prefix `scheduler_`) | type |
|---|---|
| `pending_pods{queue}` | gauge |

```yaml
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 2
```
"""


def test_a_page_that_is_right_passes():
    assert wrong(RIGHT) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("`muster.cli.mainn`", "1: there is no muster.cli.mainn"),
        ("`muster.cli.exits.Failur`", "1: there is no muster.cli.exits.Failur"),
        ("`cli.mainn`", "1: there is no muster.cli.mainn"),
        ("```\nimport muster.clii\n```", "2: there is no muster.clii"),
        ("```python\n\nfrom muster.cli.exits import Fail\n```", "3: there is no muster.cli.exits.Fail"),
        ("\n`cli/mainn.py`", "2: there is no cli/mainn.py"),
        ("`mainn.py`", "1: there is no mainn.py"),
        ("`clii/`", "1: there is no clii/"),
        ("`src/muster/clii/NAME.py`", "1: there is no src/muster/clii/NAME.py"),
        ("    kubectl apply -f examples/nothing.yaml", "1: there is no examples/nothing.yaml"),
        ("[page](nothing.md)", "1: there is no nothing.md"),
        ("`Failuree`", "1: the sources do not have the word Failuree"),
        ("```\nsrc/muster/\n  cli/\n    mainn.py  it\n```", "4: there is no mainn.py in src/muster/cli/"),
        ("```\nsrc/muster/\n  cli/   has mainn.py\n```", "3: there is no mainn.py"),
        ("```\nsrc/muster/\n  cli/\n  exits.py   it\n```", "4: there is no exits.py in src/muster/"),
        ("`muster simulat -f x`", "1: there is no command muster simulat"),
        ("`muster node fale x`", "1: there is no command muster node fale"),
        ("`muster simulate --node 3`", "1: muster simulate has no flag --node"),
        ("```\n$ muster up --memori\n```", "2: muster up has no flag --memori"),
        ("x\n\n    muster queue -z", "3: muster queue has no flag -z"),
        ("`muster queue NAME`", "1: muster queue takes no NAME"),
        ("`muster migrate --to native|cdr`", "1: --to cannot be cdr"),
        ("`muster completion bahs`", "1: shell cannot be bahs"),
        ("`--feature-gate A=true`", "1: no command here has the flag --feature-gate"),
        ("## `muster queue`\n`--memory`", "2: no command here has the flag --memory"),
        ("`make tests`", "1: the Makefile has no target tests"),
        ("`python -m bench.clusters`", "1: there is no module bench.clusters to run"),
        ("`python -m bench.cluster`, `--quik`", "1: no command here has the flag --quik"),
        ("`scheduler_pending_pod`", "1: there is no metric scheduler_pending_pod"),
        ("| name (prefix `scheduler_`) |\n|---|\n| `pending_pod` |", "3: there is no metric scheduler_pending_pod"),
        ("| gate |\n|---|\n| GangSchedulin |", "3: there is no feature gate GangSchedulin"),
        ("| `action` |\n|---|\n| `add-node` |", "3: there is no action add-node"),
        ("| code |\n|---|\n| 3 |", "3: there is no exit code 3"),
        ("| code | see |\n|---|---|\n| 1 | `sourceless` |", "3: the sources do not have the word sourceless"),
        ("## `muster explain`\n### JSON\n| field |\n|---|\n| `heltIn` |", "5: there is no field heltIn"),
        (
            "| command | each entry of the JSON |\n|---|---|\n| `queue` | `priorty` |",
            "3: the JSON of queue has no field priorty",
        ),
    ],
)
def test_a_name_that_is_misspelt_is_found(text: str, complaint: str):
    found = wrong(text)
    assert complaint in found


EXAMPLE = """```python
class Base:
    weight = 1

    def score(self, shape, slots): ...


class Rule(Base):
    pass
```

"""


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("| attribute |\n|---|\n| `wait` |", "there is no attribute of Base wait"),
        ("| method |\n|---|\n| `scores(shape, slots)` |", "Base has no method scores"),
        ("| method |\n|---|\n| `score(shape)` |", "score takes shape, slots"),
        ("| attribute |\n|---|\n| `weight` |", ""),
        ("| method |\n|---|\n| `score(shape, slots)` |", ""),
    ],
)
def test_attributes_and_methods_are_those_of_the_example_s_base(table: str, complaint: str):
    found = wrong(EXAMPLE + table, about_the_code=False)
    assert [text.partition(": ")[2] for text in found] == ([complaint] if complaint else [])


@pytest.mark.parametrize(
    ("field", "known"),
    [
        ("podMaxBackoffSeconds", True),
        ("podMaxBackoffSecond", False),
        ("leaderElection.leaseDuration", True),
        ("leaderElections.leaseDuration", False),
        ("profiles[].schedulerName", True),
        ("profiles[].schedulersName", False),
        ("plugins.multiPoint", True),
        ("plugins.multipoint", False),
        ("pluginConfig[NodeResourcesFit].args.scoringStrategy", True),
        ("pluginConfig[NodeResourcesFit].args.scoringStrateg", False),
        ("pluginConfig[NodeResources].args", False),
    ],
)
def test_a_field_of_the_configuration_is_one_that_the_loader_knows(field: str, known: bool):
    found = wrong(f"| field of the configuration |\n|---|\n| `{field}` |")
    assert (found == []) is known


def test_yaml_is_loaded_as_what_it_is():
    config = "```yaml\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{}\n```"
    group = "```yaml\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {{name: g}}\nspec: {}\n```"
    assert wrong(config.format("podMaxBackoffSeconds: 3")) == []
    assert "podMaxBackoffSecond: unknown field" in wrong(config.format("podMaxBackoffSecond: 3"))[0]
    assert wrong(group.format("{schedulingPolicy: {gang: {minCount: 2}}}")) == []
    assert "minCount" in wrong(group.format("{schedulingPolicy: {gang: {minCount: 0}}}"))[0]
