"""Hypothesis strategies for valid PodGroups, CompositePodGroups and Workloads as JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Obj = dict[str, Any]

labels = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
int32 = st.integers(min_value=1, max_value=2**31 - 1)
empty = st.just({})
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
modes = st.sampled_from([{"single": {}}, {"all": {}}])
policies = st.fixed_dictionaries({"basic": empty}) | st.fixed_dictionaries(
    {"gang": st.fixed_dictionaries({"minCount": int32})}
)
composite_policies = st.fixed_dictionaries({"basic": empty}) | st.fixed_dictionaries(
    {"gang": st.fixed_dictionaries({"minGroupCount": int32})}
)
references = st.fixed_dictionaries({"workloadName": labels, "templateName": labels})
constraints = st.fixed_dictionaries({"topology": st.lists(st.fixed_dictionaries({"key": labels}), max_size=1)})
claims = st.lists(
    st.fixed_dictionaries({"name": labels, "resourceClaimName": labels}),
    max_size=4,
    unique_by=lambda claim: claim["name"],
)
common = {
    "schedulingConstraints": constraints,
    "disruptionMode": modes,
    "priorityClassName": labels,
    "priority": st.integers(-(2**31), 10**9),
    "preemptionPolicy": st.sampled_from(["Never", "PreemptLowerPriority"]),
}
unknown = {"someNewField": json_values}
conditions = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["PodGroupInitiallyScheduled", "PodGroupScheduled", "DisruptionTarget", "Other"]),
            "status": st.sampled_from(["True", "False", "Unknown"]),
            "reason": st.just("Because"),
            "lastTransitionTime": st.just("2026-01-01T00:00:00Z"),
        }
    ),
    max_size=4,
    unique_by=lambda condition: condition["type"],
)
metadata = st.fixed_dictionaries(
    {"name": labels, "namespace": labels},
    optional={
        "annotations": st.dictionaries(labels, st.text(max_size=10), max_size=3),
        "labels": st.dictionaries(labels, labels, max_size=2),
        "uid": labels,
    },
)


def _kind(kind: str, spec: st.SearchStrategy[Obj], status: st.SearchStrategy[Obj] | None) -> st.SearchStrategy[Obj]:
    extra = {"status": status} if status is not None else {}
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just("scheduling.k8s.io/v1alpha3"),
            "kind": st.just(kind),
            "metadata": metadata,
            "spec": spec,
        },
        optional=extra,
    )


pod_groups = _kind(
    "PodGroup",
    st.fixed_dictionaries(
        {"schedulingPolicy": policies, "workloadRef": references},
        optional={**common, **unknown, "parentCompositePodGroupName": labels, "resourceClaims": claims},
    ),
    st.fixed_dictionaries({}, optional={"conditions": conditions}),
)
composite_groups = _kind(
    "CompositePodGroup",
    st.fixed_dictionaries(
        {"schedulingPolicy": composite_policies, "workloadRef": references},
        optional={**common, **unknown, "parentCompositePodGroupName": labels},
    ),
    st.fixed_dictionaries({}, optional={"conditions": conditions}),
)


@st.composite
def workloads(draw: st.DrawFn) -> Obj:
    priority = draw(st.fixed_dictionaries({}, optional={"priorityClassName": labels}))
    optional = {key: value for key, value in common.items() if not key.startswith("priority")}
    names = iter(range(1000))

    def leaves(least: int, **fixed: Any) -> list[Obj]:
        return [
            {"name": f"t{next(names)}", **priority, **body, **fixed}
            for body in draw(
                st.lists(
                    st.fixed_dictionaries({"schedulingPolicy": policies}, optional={**optional, **unknown}),
                    min_size=least,
                    max_size=3,
                )
            )
        ]

    def composite(level: int) -> Obj:
        body = {"name": f"c{next(names)}", "schedulingPolicy": draw(composite_policies), **priority}
        body["podGroupTemplates"] = leaves(1)
        if level < 3 and draw(st.booleans()):
            body["compositePodGroupTemplates"] = [composite(level + 1)]
        return body

    base = draw(_kind("Workload", st.just({}), None))
    spec: Obj = draw(
        st.fixed_dictionaries(
            {}, optional={"controllerRef": st.fixed_dictionaries({"kind": labels, "name": labels}), **unknown}
        )
    )
    if draw(st.booleans()):
        spec["podGroupTemplates"] = leaves(1)
    else:
        spec["compositePodGroupTemplates"] = [composite(1) for _ in range(draw(st.integers(1, 2)))]
    return {**base, "spec": spec}


any_group = pod_groups | composite_groups | workloads()
