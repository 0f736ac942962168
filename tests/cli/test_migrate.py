"""`muster migrate`: YAML on stdout that kubectl reads as it was meant, notes on stderr."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cli import exits, main
from muster.cli.yaml_text import to_documents, to_yaml
from muster.views.documents import read

DRAFT = """\
apiVersion: scheduling/v1alpha1
kind: Workload
metadata: {name: myjob}
spec:
  podGroups:
  - {name: pg1, gangMode: Single, minCount: 2, schedulingTimeoutSeconds: 60}
---
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {on: "yes"}}
spec: {workload: {name: myjob}}
"""


@pytest.fixture
def migrate(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    def run(text: str, *arguments: str) -> tuple[int, list[dict], str]:
        path = tmp_path / "in.yaml"
        path.write_text(text)
        code = main.run(["migrate", "-f", str(path), *arguments])
        shown = capsys.readouterr()
        return code, [document.value for document in read("out", shown.out.encode())], shown.err

    return run


def test_a_draft_becomes_current_manifests_and_notes(migrate):
    code, objects, notes = migrate(DRAFT)
    assert code == exits.OK
    assert [obj["kind"] for obj in objects] == ["Workload", "PodGroup", "Pod"]
    assert objects[2]["spec"] == {"schedulingGroup": {"podGroupName": "myjob-pg1"}}
    assert objects[2]["metadata"]["labels"] == {"true": "yes"}
    assert "workload/myjob: no equivalent: schedulingTimeoutSeconds: 60" in notes


def test_manifests_for_the_crds(migrate):
    _, objects, _ = migrate(DRAFT, "--to", "crd")
    assert objects[0]["apiVersion"] == "scheduling.muster.dev/v1alpha3"
    assert objects[2]["metadata"]["labels"]["scheduling.muster.dev/pod-group"] == "myjob-pg1"


def test_a_result_that_is_still_wrong_is_told(migrate):
    code, objects, notes = migrate(DRAFT.replace("name: myjob}\nspec:\n", "name: MyJob}\nspec:\n"))
    assert code == exits.NO
    assert objects[0]["metadata"]["name"] == "MyJob"
    assert "workload/MyJob: still wrong: metadata.name" in notes


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "a: 1\na: 2\n"])
def test_input_that_cannot_be_understood_is_refused(migrate, text: str):
    code, objects, notes = migrate(text)
    assert (code, objects) == (exits.BAD_INPUT, [])
    assert "in.yaml:" in notes


AWKWARD = st.sampled_from(
    ["y", "on", "1e3", "0o17", "0777", "1:30", "2026-11-15", "~", "", "1_0", ".inf", "- a", "a: b", "<<", "#"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | AWKWARD | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(AWKWARD | st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(AWKWARD | st.text(max_size=5), VALUES, min_size=1, max_size=4))
def test_what_is_written_is_read_back_the_same(value: dict):
    (document,) = read("f", to_yaml(value).encode())
    assert document.value == value
    assert document.problems == []


def test_shared_parts_are_written_out():
    shared = {"a": 1}
    assert "&" not in to_yaml({"x": shared, "y": shared})
    assert to_documents([{"a": 1}, {"b": 2}]) == "a: 1\n---\nb: 2\n"


def test_what_could_not_be_converted_is_named_with_its_line(migrate):
    text = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: chart}
data:
  pod.yaml: |
    spec: {workloadRef: {name: w, podGroup: g}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js}
spec:
  replicatedJobs:
  - template:
      spec:
        template:
          spec:
            workloadRef: {name: absent}
            containers: [{name: c, image: i}]
"""
    _, objects, notes = migrate(text)
    assert "in.yaml:5: configmap/chart: data.pod.yaml is not in a pod template" in notes
    assert "in.yaml:17: jobset/js: its Workload 'absent' is not among the input" in notes
    assert "workloadRef" not in str(objects[1])
