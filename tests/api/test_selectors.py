"""Selectors and tolerations decide exactly as Kubernetes does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import selectors
from muster.api.selectors import FieldRequirement, Requirement
from muster.api.types import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)

LABELS = {"app": "web", "rank": "7", "empty": ""}


def test_no_selector_selects_nothing_and_an_empty_one_everything():
    assert not selectors.matches(None, LABELS)
    assert selectors.matches(LabelSelector(), LABELS)
    assert selectors.matches(LabelSelector(), None)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (Requirement("app", "In", ("web", "db")), True),
        (Requirement("app", "In", ("db",)), False),
        (Requirement("gone", "In", ("",)), False),
        (Requirement("app", "NotIn", ("db",)), True),
        (Requirement("app", "NotIn", ("web",)), False),
        (Requirement("gone", "NotIn", ("web",)), True),
        (Requirement("gone", "NotIn", ()), False),
        (Requirement("app", "Exists"), True),
        (Requirement("gone", "Exists"), False),
        (Requirement("app", "Exists", ("web",)), False),
        (Requirement("app", "DoesNotExist"), False),
        (Requirement("gone", "DoesNotExist"), True),
        (Requirement("rank", "Gt", ("6",)), True),
        (Requirement("rank", "Gt", ("7",)), False),
        (Requirement("rank", "Lt", ("8",)), True),
        (Requirement("rank", "Lt", ("7",)), False),
        (Requirement("rank", "Lt", ("+8",)), True),
        (Requirement("gone", "Lt", ("8",)), False),
        (Requirement("app", "Gt", ("1",)), False),
        (Requirement("rank", "Gt", ("x",)), False),
        (Requirement("rank", "Gt", ("1", "2")), False),
        (Requirement("rank", "Lt", (str(2**63),)), False),
        (Requirement("app", "Sometimes", ("web",)), False),
    ],
)
def test_each_operator(requirement: Requirement, expected: bool):
    assert selectors.satisfies(requirement, LABELS) is expected


def test_a_label_selector_needs_all_of_its_conditions():
    selector = LabelSelector(
        match_labels={"app": "web"}, match_expressions=(LabelSelectorRequirement("rank", "In", ("7", "8")),)
    )
    assert selectors.matches(selector, LABELS)
    assert not selectors.matches(selector, {"app": "web"})
    assert not selectors.matches(selector, {"rank": "7"})
    assert selectors.requirements(selector) == (
        Requirement("app", "In", ("web",)),
        Requirement("rank", "In", ("7", "8")),
    )


def test_a_label_selector_does_not_compare_numbers():
    selector = LabelSelector(match_expressions=(LabelSelectorRequirement("rank", "Gt", ("1",)),))
    assert not selectors.matches(selector, LABELS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("   ", ()),
        ("app=web", (Requirement("app", "In", ("web",)),)),
        ("app==web", (Requirement("app", "In", ("web",)),)),
        ("app != web", (Requirement("app", "NotIn", ("web",)),)),
        ("app=", (Requirement("app", "In", ("",)),)),
        ("app in (a, b)", (Requirement("app", "In", ("a", "b")),)),
        ("app notin (a,,b)", (Requirement("app", "NotIn", ("a", "", "b")),)),
        ("app in ()", (Requirement("app", "In", ("",)),)),
        ("app,!gone", (Requirement("app", "Exists"), Requirement("gone", "DoesNotExist"))),
        ("x.io/rank>5,rank<9", (Requirement("x.io/rank", "Gt", ("5",)), Requirement("rank", "Lt", ("9",)))),
    ],
)
def test_the_text_of_a_label_selector(text: str, expected: tuple[Requirement, ...]):
    assert selectors.parse_labels(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a=b=c",
        "a,,b",
        "a,",
        ",a",
        "x in (a",
        "x in a",
        "!a=b",
        "a<b",
        "=",
        "a b",
        "a/b/c",
        "-a",
        "a=-b",
        "a in (b) c",
        "!",
    ],
)
def test_a_malformed_label_selector_is_refused(text: str):
    with pytest.raises(ValueError, match="label"):
        selectors.parse_labels(text)


@given(st.text("ab=!,() in<>", max_size=12))
def test_any_text_is_a_label_selector_or_a_value_error(text: str):
    try:
        parsed = selectors.parse_labels(text)
    except ValueError:
        return
    assert isinstance(selectors.all_satisfied(parsed, LABELS), bool)


def test_all_requirements_must_hold():
    assert selectors.all_satisfied((), None)
    assert selectors.all_satisfied(selectors.parse_labels("app=web,rank"), LABELS)
    assert not selectors.all_satisfied(selectors.parse_labels("app=web,!rank"), LABELS)


def test_the_text_of_a_field_selector():
    parsed = selectors.parse_fields(r"spec.nodeName=a\,b\\,status.phase!=Failed,,metadata.name==x")
    assert parsed == (
        FieldRequirement("spec.nodeName", True, "a,b\\"),
        FieldRequirement("status.phase", False, "Failed"),
        FieldRequirement("metadata.name", True, "x"),
    )
    assert selectors.parse_fields("") == ()


@pytest.mark.parametrize("text", ["abc", "=x", "a=b=c", r"a=\n"])
def test_a_malformed_field_selector_is_refused(text: str):
    with pytest.raises(ValueError, match="field selector"):
        selectors.parse_fields(text)


def _term(*expressions: tuple[str, str, tuple[str, ...]], fields: tuple[tuple[str, str, tuple[str, ...]], ...] = ()):
    return NodeSelectorTerm(
        match_expressions=tuple(NodeSelectorRequirement(*each) for each in expressions),
        match_fields=tuple(NodeSelectorRequirement(*each) for each in fields),
    )


def test_one_term_of_a_node_selector_suffices():
    selector = NodeSelector((_term(("zone", "In", ("a",))), _term(("rank", "Gt", ("5",)))))
    assert selectors.node_matches(selector, "n", {"zone": "a"})
    assert selectors.node_matches(selector, "n", {"rank": "6"})
    assert not selectors.node_matches(selector, "n", {"zone": "b"})


def test_all_expressions_of_a_term_must_hold():
    term = _term(("zone", "In", ("a",)), ("rank", "Lt", ("5",)), fields=(("metadata.name", "In", ("n",)),))
    assert selectors.term_matches(term, "n", {"zone": "a", "rank": "1"})
    assert not selectors.term_matches(term, "n", {"zone": "a", "rank": "9"})
    assert not selectors.term_matches(term, "other", {"zone": "a", "rank": "1"})


def test_an_empty_term_and_a_missing_selector_select_no_node():
    assert not selectors.term_matches(NodeSelectorTerm(), "n", {})
    assert not selectors.node_matches(NodeSelector(), "n", {})
    assert not selectors.node_matches(NodeSelector((NodeSelectorTerm(),)), "n", {})
    assert not selectors.node_matches(None, "n", {})


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (("metadata.name", "In", ("n",)), True),
        (("metadata.name", "NotIn", ("n",)), False),
        (("metadata.name", "NotIn", ("m",)), True),
        (("metadata.name", "In", ("n", "m")), False),
        (("metadata.name", "Exists", ()), False),
        (("metadata.name", "Gt", ("1",)), False),
        (("spec.other", "In", ("n",)), False),
        (("spec.other", "NotIn", ("n",)), True),
    ],
)
def test_match_fields_knows_the_name_of_a_node(field: tuple[str, str, tuple[str, ...]], expected: bool):
    assert selectors.term_matches(_term(fields=(field,)), "n", None) is expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("gpu", "Equal", "yes", "NoSchedule"), True),
        (Toleration("gpu", "", "yes"), True),
        (Toleration("gpu", "Equal", "no"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", effect="NoExecute"), False),
        (Toleration("other", "Exists"), False),
        (Toleration("", "Equal", "yes"), True),
        (Toleration("gpu", "Gt", "yes"), False),
    ],
)
def test_a_toleration_accepts_a_taint(toleration: Toleration, expected: bool):
    assert selectors.tolerates(toleration, Taint("gpu", "NoSchedule", "yes")) is expected


def test_the_first_taint_that_nothing_tolerates():
    soft, hard = Taint("soft", "PreferNoSchedule"), Taint("hard", "NoSchedule")
    assert selectors.first_untolerated((soft, hard), None) == hard
    assert selectors.first_untolerated((soft, hard), (Toleration("hard", "Exists"),)) is None
    assert selectors.first_untolerated(None, None) is None
    assert selectors.first_untolerated((soft,), (), frozenset(("PreferNoSchedule",))) == soft
