"""Alert rules and graphs: every expression is PromQL, every metric is exported, every alert has its page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from deploy.grafana import dashboard

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "deploy" / "observability"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((PLACE / "alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
QUERIES = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
EXPRESSIONS = [*(rule["expr"] for rule in RULES), *(each.replace("$__rate_interval", "5m") for each in QUERIES)]


def exported() -> set[str]:
    return set(re.findall(r"`((?:scheduler_)?[a-z_]+)", (ROOT / "docs" / "metrics.md").read_text()))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_promql(expression: str) -> None:
    promql_parser.parse(expression)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_in_an_expression_is_exported(expression: str) -> None:
    names = re.findall(r"\b(?:scheduler|leader_election)_[a-z_]+", expression)
    assert names
    known = exported()
    for name in names:
        bare = name.removesuffix("_bucket").removeprefix("scheduler_")
        assert bare in known or name in known, name


def test_the_dashboard_file_is_what_the_code_makes() -> None:
    assert json.loads((PLACE / "grafana.json").read_text()) == dashboard(), "write it anew: python -m deploy"


def test_every_alert_has_its_section_on_the_page() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text()
    sections = re.findall(r"^## (Muster\w+)$", page, re.MULTILINE)
    assert sections == sorted(sections, key=sections.index)
    assert {rule["alert"] for rule in RULES} == set(sections)
    for rule in RULES:
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{rule['alert'].lower()}"


def test_panels_do_not_lie_on_each_other() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard()["panels"]]
    assert len(set(places)) == len(places)
