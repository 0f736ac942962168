"""Whether a Job is a gang: its own policy, then the annotation, then its form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.job_gangs import (
    GANG_ANNOTATION,
    BadGangAnnotation,
    check_annotation,
    gang_annotation,
    minimum_of,
    pods_at_once,
)

STATIC: dict[str, Any] = {"completionMode": "Indexed", "parallelism": 4, "completions": 4}
GANG = {"schedulingPolicy": {"gang": {}}}


@pytest.mark.parametrize(
    ("changes", "minimum"),
    [
        ({}, 4),
        ({"completionMode": "NonIndexed"}, None),
        ({"completions": 8}, None),  # it runs in waves
        ({"parallelism": 8}, None),
        ({"parallelism": 1, "completions": 1}, None),
        ({"completions": None}, None),
        ({"parallelism": 0, "completions": 0}, None),
    ],
)
def test_a_static_fully_parallel_indexed_job_is_a_gang_of_all_its_pods(changes: dict[str, Any], minimum: int | None):
    assert minimum_of({**STATIC, **changes}) == minimum
    assert minimum_of({**STATIC, **changes}, infer=False) is None


@pytest.mark.parametrize(
    ("scheduling", "minimum"),
    [
        ({"schedulingPolicy": {"basic": {}}}, None),
        ({"schedulingPolicy": {"gang": {}}}, 4),
        ({"schedulingPolicy": {"gang": {"minCount": 2}}}, 2),
        ({"disruptionMode": {"single": {}}}, 4),  # it says nothing of a policy
    ],
)
def test_the_jobs_own_policy_comes_first(scheduling: dict[str, Any], minimum: int | None):
    assert minimum_of({**STATIC, "scheduling": scheduling}, "3" if minimum != 4 else None) == minimum


@pytest.mark.parametrize(("value", "minimum"), [("none", None), ("all", 3), ("2", 2)])
def test_the_annotation_overrides_the_form(value: str, minimum: int | None):
    assert minimum_of({"parallelism": 3}, value, infer=False) == minimum
    assert minimum_of({**STATIC, "parallelism": 3, "completions": 3}, value) == minimum


@pytest.mark.parametrize("value", ["", "many", "0", "-1", "2.5", "²", "All"])
def test_an_annotation_that_means_nothing_is_refused_and_ignored_where_it_is_stored(value: str):
    with pytest.raises(BadGangAnnotation, match="must be none, all or a number of pods"):
        check_annotation(value, STATIC)
    assert minimum_of(STATIC, value) == 4
    assert minimum_of({"parallelism": 3}, value) is None


def test_a_number_above_the_parallelism_is_refused():
    with pytest.raises(BadGangAnnotation, match=r"must not be greater than parallelism \(4\)"):
        check_annotation("5", STATIC)
    check_annotation("4", STATIC)


def test_the_annotation_of_the_job_is_asked_before_that_of_its_template():
    spec = {"template": {"metadata": {"annotations": {GANG_ANNOTATION: "all"}}}}
    assert gang_annotation({GANG_ANNOTATION: "none"}, spec) == "none"
    assert gang_annotation({"other": "x"}, spec) == "all"
    assert gang_annotation(None, {"template": None}) is None


@given(
    st.fixed_dictionaries(
        {
            "parallelism": st.none() | st.integers(0, 9),
            "completions": st.none() | st.integers(0, 9),
            "completionMode": st.sampled_from(["Indexed", "NonIndexed"]),
            "scheduling": st.sampled_from([None, {}, GANG, {"schedulingPolicy": {"basic": {}}}]),
        }
    ),
    st.none() | st.sampled_from(["none", "all"]),
)
def test_a_gang_never_waits_for_pods_that_its_job_does_not_make(spec: dict[str, Any], annotation: str | None):
    minimum = minimum_of(spec, annotation)
    made = min(x for x in (spec["parallelism"], spec["completions"], 9) if x is not None)
    if spec["parallelism"] is None:
        made = min(made, 1)
    assert minimum is None or 1 <= minimum <= max(1, made)
    assert pods_at_once(spec) == max(1, made)
