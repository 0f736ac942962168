"""Which leaf group a pod belongs to, read off the pod alone: one table of rules with three users.

The scheduler derives membership in memory where nothing may be written on pods, the embedded server writes it at
admission, and native clusters get the same table as expressions of a MutatingAdmissionPolicy
(`muster.api.membership_policy`). So every condition and every part of a name exists twice: as a function of the pod and
as text of the Common Expression Language; a test compares the two on random pods.

The first rule whose conditions hold decides. Names are concatenations, because expressions know no hash function and a
pod has no uid yet when it is admitted. A name that is no legal name of an object means no group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from muster.api.job_gangs import GANG_ANNOTATION, NO_GANG
from muster.api.pod_conditions import (
    SHORT_UID,
    AnnotationIs,
    Condition,
    ControlledBy,
    ControlledByGroup,
    Facts,
    HasAnnotation,
    HasLabel,
    Label,
    LabelIs,
    Not,
    OwnerName,
    OwnerUid,
    Part,
    Text,
)
from muster.api.resources import JOBS, REPLICA_SETS, STATEFUL_SETS, Resource

PREFIX = "scheduling.muster.dev/"
POD_GROUP_LABEL = f"{PREFIX}pod-group"
OWN_GROUP_LABEL = f"{PREFIX}own-group"
MANAGED_LABEL = f"{PREFIX}managed"  # of a namespace

# On the groups that are made for a workload: which one.
OWNER_KIND, OWNER_NAME, OWNER_UID = f"{PREFIX}owner-kind", f"{PREFIX}owner-name", f"{PREFIX}owner-uid"

JOBSET = "jobset.sigs.k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
RAY = "ray.io/"
KUBEFLOW = "training.kubeflow.org/"
KUEUE = "kueue.x-k8s.io/"
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
COMPLETION_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
KUEUE_GROUP_LABEL = f"{KUEUE}pod-group-name"
SUBGROUP_SIZE = f"{LWS}subgroup-size"

JOB_SETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", True)
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", True)
RAY_CLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster", True)
COSCHEDULING_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", True)

LEGAL_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LONGEST_NAME = 253
_LEGAL = re.compile(LEGAL_NAME)


ANNOTATIONS = (GANG_ANNOTATION, SUBGROUP_SIZE)
"""The annotations of a pod that the rules read."""


# --- the table -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeafRule:
    """Pods that fulfil all conditions are members of the leaf whose name is made of the parts; no parts: of none."""

    name: str
    conditions: tuple[Condition, ...]
    parts: tuple[Part, ...]
    workload: Resource | None = None  # the kind of the object that says how large the group is
    workload_name: Part | None = None  # the name of that object; without `workload`: of the controller, whatever kind

    @property
    def is_ours(self) -> bool:
        """Whether the group is one that is made for its pods; who names one by a label makes it."""
        return self.workload_name is not None or self.name == KUEUE_LEAF

    def workload_of(self, pod: Facts) -> WorkloadKey | None:
        """The object that says how large the pod's group is; None where only the pods say it."""
        if self.workload_name is None:
            return None
        group, kind = pod.owner_group, pod.owner_kind
        if self.workload is not None:
            group, kind = self.workload.group, self.workload.kind
        return WorkloadKey(group, kind, self.workload_name.text(pod))


class WorkloadKey(NamedTuple):
    """An object in the namespace of the pods that it is about."""

    group: str
    kind: str
    name: str


def _rule(
    name: str, parts: tuple[Part | str, ...], *conditions: Condition, of: tuple[Resource | None, Part | None]
) -> LeafRule:
    whole = tuple(Text(each) if isinstance(each, str) else each for each in parts)
    needed = tuple(HasLabel(each.key) for each in whole if isinstance(each, Label))
    return LeafRule(name, (*conditions, *needed), whole, *of)


_OF_PODS = (None, None)
_OF_JOBSET = (JOB_SETS, Label(f"{JOBSET}jobset-name"))
_OF_LWS = (LEADER_WORKER_SETS, Label(f"{LWS}name"))
_REPLICA: tuple[Part | str, ...] = (
    Label(f"{LWS}name"),
    "-",
    Label(f"{LWS}group-index"),
    "-",
    Label(f"{LWS}template-revision-hash"),
)
_OWNER: tuple[Part | str, ...] = (OwnerName(), "-", OwnerUid())

JOBSET_LEAF = "jobset"
LWS_LEAF, LWS_SUBGROUP, LWS_LEADER, LWS_UNLABELLED = "lws", "lws-subgroup", "lws-leader", "lws-unlabelled"
RAY_LEAF, KUBEFLOW_LEAF = "ray", "kubeflow"
COSCHEDULING_LEAF, KUEUE_LEAF = "coscheduling", "kueue-pods"
INDEXED_JOB_LEAF, JOB_LEAF = "indexed-job", "job"
STATEFUL_SET_LEAF, REPLICA_SET_LEAF = "statefulset", "replicaset"

RULES: tuple[LeafRule, ...] = (
    LeafRule("opted-out", (HasLabel(OWN_GROUP_LABEL),), ()),
    _rule("label", (Label(POD_GROUP_LABEL),), of=_OF_PODS),
    LeafRule("no-gang", (AnnotationIs(GANG_ANNOTATION, NO_GANG),), ()),
    LeafRule("no-gang-label", (LabelIs(GANG_ANNOTATION, NO_GANG),), ()),
    _rule(
        COSCHEDULING_LEAF,
        (Label(COSCHEDULING_LABEL), "-cos"),
        of=(COSCHEDULING_GROUPS, Label(COSCHEDULING_LABEL)),
    ),
    _rule(
        JOBSET_LEAF,
        (
            Label(JOB_NAME_LABEL),
            "-",
            Label(f"{JOBSET}jobset-uid", SHORT_UID),
            "-",
            Label(f"{JOBSET}restart-attempt"),
        ),
        HasLabel(f"{JOBSET}jobset-name"),
        of=_OF_JOBSET,
    ),
    _rule(LWS_SUBGROUP, (*_REPLICA, "-s", Label(f"{LWS}subgroup-index")), of=_OF_LWS),
    # The leader's labels come from a webhook, all at once; a leader that has its group index has no subgroup.
    _rule(
        LWS_LEADER,
        (*_REPLICA, "-leader"),
        HasAnnotation(SUBGROUP_SIZE),
        LabelIs(f"{LWS}worker-index", "0"),
        of=_OF_LWS,
    ),
    # A worker that will be in a subgroup and is not told yet in which: the webhook comes after the policy's first look.
    LeafRule(LWS_UNLABELLED, (HasLabel(f"{LWS}name"), HasAnnotation(SUBGROUP_SIZE)), ()),
    _rule(LWS_LEAF, _REPLICA, of=_OF_LWS),
    _rule(
        RAY_LEAF,
        (Label(f"{RAY}cluster"), "-", Label(f"{RAY}group"), "-", OwnerUid()),
        ControlledBy(RAY_CLUSTERS),
        of=(RAY_CLUSTERS, OwnerName()),
    ),
    _rule(
        KUBEFLOW_LEAF,
        (Label(f"{KUBEFLOW}job-name"), "-", Label(f"{KUBEFLOW}replica-type"), "-", OwnerUid()),
        ControlledByGroup("kubeflow.org"),
        of=(None, OwnerName()),
    ),
    # Kueue also labels the pods of StatefulSets, which may come one after another.
    _rule(KUEUE_LEAF, (Label(KUEUE_GROUP_LABEL),), Not(ControlledBy(STATEFUL_SETS)), of=_OF_PODS),
    _rule(INDEXED_JOB_LEAF, _OWNER, ControlledBy(JOBS), HasLabel(COMPLETION_INDEX_LABEL), of=(JOBS, OwnerName())),
    _rule(JOB_LEAF, _OWNER, ControlledBy(JOBS), HasAnnotation(GANG_ANNOTATION), of=(JOBS, OwnerName())),
    _rule(
        STATEFUL_SET_LEAF,
        _OWNER,
        ControlledBy(STATEFUL_SETS),
        HasAnnotation(GANG_ANNOTATION),
        of=(STATEFUL_SETS, OwnerName()),
    ),
    _rule(
        REPLICA_SET_LEAF,
        _OWNER,
        ControlledBy(REPLICA_SETS),
        HasAnnotation(GANG_ANNOTATION),
        of=(REPLICA_SETS, OwnerName()),
    ),
)


def rule_for(pod: Facts) -> LeafRule | None:
    """The first rule that is about a pod."""
    if not pod.labels and not pod.owner_kind and not pod.annotations:
        return None
    for rule in RULES:
        if all(condition.holds(pod) for condition in rule.conditions):
            return rule
    return None


def leaf_of(pod: Facts) -> str:
    """The name of the leaf group of a pod that names none itself; empty: it belongs to none."""
    rule = rule_for(pod)
    return leaf_name(rule, pod) if rule is not None else ""


def leaf_name(rule: LeafRule, pod: Facts) -> str:
    """The name that a rule makes of a pod; empty where that is no legal name."""
    name = "".join(part.text(pod) for part in rule.parts)
    return name if is_legal(name) else ""


def is_legal(name: str) -> bool:
    """Whether an object can have this name."""
    return 0 < len(name) <= LONGEST_NAME and _LEGAL.fullmatch(name) is not None


# --- pods as the rules read them -------------------------------------------------------------------


def facts_of(pod: Mapping[str, Any]) -> Facts:
    """A pod as JSON."""
    meta: Mapping[str, Any] = pod.get("metadata") or {}
    labels: Mapping[str, str] = meta.get("labels") or {}
    annotations: Mapping[str, str] = meta.get("annotations") or {}
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            group = str(owner.get("apiVersion") or "").rpartition("/")[0]
            return Facts(
                labels, annotations, group, owner.get("kind") or "", owner.get("name") or "", owner.get("uid") or ""
            )
    return Facts(labels, annotations)


def facts_of_meta(meta: Any) -> Facts:
    """The metadata of a decoded pod (`muster.api.types.PodMeta`)."""
    labels: Mapping[str, str] = meta.labels or {}
    read: Mapping[str, str] = meta.annotations.read() if meta.annotations is not None else {}
    for owner in meta.owner_references or ():
        if owner.controller:
            return Facts(labels, read, owner.api_version.rpartition("/")[0], owner.kind, owner.name, owner.uid)
    return Facts(labels, read)
