"""Sets of field paths obey the laws of sets, in the form that managedFields stores."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muster.server.apply.fieldsets import difference, intersection, paths, union, well_formed


def from_paths(members: set[tuple[str, ...]]) -> dict[str, Any]:
    """The stored form, built the slow and obvious way."""
    result: dict[str, Any] = {}
    for path in members:
        node = result
        for element in path:
            node = node.setdefault(f"f:{element}", {})
        node["."] = {}
    return tidy(result)


def tidy(node: dict[str, Any]) -> dict[str, Any]:
    return {key: {} if child.keys() == {"."} else tidy(child) for key, child in node.items()}


PATHS = st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple), max_size=6)


@given(PATHS, PATHS)
def test_union_difference_and_intersection_agree_with_python_sets(left: Any, right: Any):
    a, b = from_paths(left), from_paths(right)

    assert union(a, b) == from_paths(left | right)
    assert difference(a, b) == from_paths(left - right)
    assert intersection(a, b) == from_paths(left & right)


@given(PATHS)
def test_every_member_is_spoken_once(members: Any):
    assert sorted(paths(from_paths(members))) == sorted("".join(f".{name}" for name in path) for path in members)


def test_paths_are_spoken_as_kubernetes_does():
    fields = {
        "f:spec": {
            "f:containers": {'k:{"name":"a"}': {".": {}, "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {}}}}
        },
        "f:metadata": {"f:finalizers": {'v:"x"': {}}},
    }

    assert list(paths(fields)) == [
        '.metadata.finalizers[="x"]',
        '.spec.containers[name="a"]',
        '.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"]',
    ]


def test_what_clients_send_as_a_set_is_checked():
    assert well_formed({"f:a": {".": {}, 'k:{"name":"x"}': {}}})
    assert not well_formed({"a": {}})
    assert not well_formed({"f:a": 1})
    assert not well_formed([])
