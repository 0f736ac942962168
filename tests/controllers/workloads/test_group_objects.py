"""The objects of trees: the API takes them, each template is one that a group was made from, and levels agree."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muster.api.groups import MAX_TEMPLATES
from muster.api.kueue import PREEMPTION
from muster.api.membership import JOB_SETS, OWNER_NAME
from muster.api.validation import composite, podgroup, workload
from muster.controllers.workloads import jobset
from muster.controllers.workloads.group_objects import GroupSet
from muster.controllers.workloads.tree import Branch, Leaf, Sight, Tree
from tests.controllers.workloads.owners import JSON, a_jobset, a_replicated_job, ours

RULES = {"Workload": workload, "PodGroup": podgroup, "CompositePodGroup": composite}


@st.composite
def jobsets(draw: st.DrawFn) -> JSON:
    jobs = [
        a_replicated_job(
            f"j{index}",
            draw(st.integers(0, 4)),
            draw(st.integers(1, 4)),
            groupName=draw(st.sampled_from(["default", "x", "y"])),
        )
        for index in range(draw(st.integers(1, 12)))
    ]
    annotations = ours(
        gang_level=draw(st.sampled_from(["set", "role", "replica"])),
        topology=draw(st.sampled_from(["rack", "bad key"])),
    )
    order = draw(st.sampled_from(["AnyOrder", "InOrder"]))
    return a_jobset(*jobs, annotations=annotations, startupPolicy={"startupPolicyOrder": order})


def objects_of(owner: JSON, tree: Tree) -> GroupSet:
    return GroupSet(owner, JOB_SETS, tree)


def templates_of(spec: JSON) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    for listed in ("podGroupTemplates", "compositePodGroupTemplates"):
        for each in spec.get(listed) or ():
            found[each["name"]] = each
            found |= templates_of(each)
    return found


@given(jobsets())
def test_the_api_takes_every_object_and_each_names_a_template_that_exists(owner: JSON):
    tree = jobset.tree_of(owner, Sight())
    made = objects_of(owner, tree)

    for obj in (*made.workloads, *made.composites, *made.groups):
        rules = RULES[obj["kind"]]
        copy: Any = {**obj, "spec": {**obj["spec"]}}
        rules.default(copy)
        assert rules.validate(copy, None, "") == []
    templates = {each["metadata"]["name"]: templates_of(each["spec"]) for each in made.workloads}
    for obj in (*made.composites, *made.groups):
        if reference := obj["spec"].get("workloadRef"):
            assert reference["templateName"] in templates[reference["workloadName"]]


@given(jobsets())
def test_every_minimum_can_be_reached(owner: JSON):
    for node, _ in jobset.tree_of(owner, Sight()).nodes():
        if isinstance(node, Branch):
            assert node.minimum is None or 1 <= node.minimum <= len(node.children)
            assert len(node.children) > 1 or (node.topology and node.children[0].topology)


def test_equal_siblings_share_a_template():
    owner = a_jobset(a_replicated_job("w", 20, 2), a_replicated_job("d"))
    (workload_,) = objects_of(owner, jobset.tree_of(owner, Sight())).workloads

    assert sorted(templates_of(workload_["spec"])) == ["d-job", "jobset", "w", "w-job"]


def test_more_shapes_than_a_list_may_have_share_the_last_template():
    leaves = tuple(Leaf(f"l{index}", index + 1) for index in range(MAX_TEMPLATES + 4))
    owner = a_jobset()
    made = objects_of(owner, Tree((Branch("root", len(leaves), leaves),)))

    (workload_,) = made.workloads
    (root,) = workload_["spec"]["compositePodGroupTemplates"]
    assert len(root["podGroupTemplates"]) == MAX_TEMPLATES
    assert [each["spec"]["schedulingPolicy"]["gang"]["minCount"] for each in made.groups] == list(range(1, 13))


def test_a_name_that_is_no_label_value_is_left_out_of_the_labels():
    owner = a_jobset(a_replicated_job("w"))
    owner["metadata"]["name"] = "x" * 64
    (group,) = objects_of(owner, jobset.tree_of(owner, Sight())).groups

    assert OWNER_NAME not in group["metadata"]["labels"]


def test_groups_in_a_queue_have_no_preemption_policy_of_their_own_and_carry_the_permission_to_evict():
    # The admission of priorities refuses a policy that differs from that of the class, or of none.
    owner = a_jobset(a_replicated_job("w", 2))
    owner["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    made = objects_of(owner, jobset.tree_of(owner, Sight()))
    assert all("preemptionPolicy" not in each["spec"] for each in (*made.groups, *made.composites))
    assert all(PREEMPTION not in each["metadata"].get("annotations", {}) for each in made.composites)

    owner["metadata"]["annotations"] = {PREEMPTION: "allowed"}
    made = objects_of(owner, jobset.tree_of(owner, Sight()))
    assert [each["metadata"]["annotations"][PREEMPTION] for each in made.composites] == ["allowed"]
