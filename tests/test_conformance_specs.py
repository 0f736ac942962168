"""The list of Kubernetes' conformance specs: all are run or have a reason, and the runner reads reports rightly."""

import json
from pathlib import Path

from e2e.conformance.run import SIGS, Result, Specs, results, shards_of

SPECS = Specs.load()


def test_every_spec_is_named_once_and_left_out_only_for_a_reason():
    named = [*SPECS.run, *(name for names in SPECS.left_out.values() for name in names)]
    assert len(named) == len(set(named)) == 215
    assert SPECS.differences(set(named)) == []
    assert all(len(reason) > 20 for reason in SPECS.left_out)
    assert all(name.startswith(tuple(f"[{sig}]" for sig in SIGS)) and "[Conformance]" in name for name in named)


def test_differences_from_the_suite_are_named():
    specs = Specs(["a", "b"], {"because": ["b", "c"]})
    assert specs.differences({"a", "b", "d"}) == ["not in specs.yaml: d", "not in the suite: c", "named twice: b"]


def test_a_report_is_read_by_full_names_and_what_is_not_in_it_did_not_run(tmp_path: Path):
    passed = {"ContainerHierarchyTexts": ["[sig-apps] Job"], "LeafNodeText": "works", "State": "passed", "RunTime": 2e9}
    failed = {**passed, "LeafNodeText": "fails", "State": "failed", "Failure": {"Message": "why"}}
    report = tmp_path / "report.json"
    report.write_text(json.dumps([{"SpecReports": [passed, failed]}]))
    names = ["[sig-apps] Job works", "[sig-apps] Job fails", "[sig-apps] Job other"]
    assert results(report, names) == [
        Result(names[0], "passed", 2.0),
        Result(names[1], "failed", 2.0, "why"),
        Result(names[2], "not run", 0.0),
    ]


def test_shards_share_the_specs():
    assert shards_of(["a", "b", "c"], 2) == [["a", "c"], ["b"]]
    assert shards_of(["a"], 3) == [["a"]]
