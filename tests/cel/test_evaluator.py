"""Where the evaluator is not installed, that is said, with the name of the package."""

from __future__ import annotations

import sys

import pytest

from muster.cel import CelMissingError, Environment, evaluator


@pytest.fixture
def without_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    evaluator.module.cache_clear()
    monkeypatch.setattr(evaluator, "module", evaluator.module)


@pytest.mark.usefixtures("without_evaluator")
def test_a_missing_evaluator_is_named() -> None:
    try:
        assert "the package cel-expr-python is missing" in evaluator.missing()
        with pytest.raises(CelMissingError, match="cel-expr-python"):
            Environment({})
    finally:
        evaluator.module.cache_clear()


def test_nothing_is_missing_where_it_is_installed() -> None:
    assert evaluator.missing() == ""
