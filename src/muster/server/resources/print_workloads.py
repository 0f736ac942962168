"""Table columns of workloads and of the group kinds: deployments, jobs, pod groups and their like."""

from __future__ import annotations

from typing import Any

from muster.api.membership import OWNER_KIND, OWNER_NAME
from muster.server.resources.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    age,
    at,
    containers,
    duration,
    epoch,
    number,
    selector_column,
    size,
    text,
)
from muster.server.resources.kind import Column, Obj, RelatedCounts

_TEMPLATE = containers("spec", "template", "spec", "containers")


# Pod groups


def policy(obj: Obj, around: RelatedCounts) -> str:
    return "Gang" if at(obj, "spec", "schedulingPolicy", "gang") is not None else "Basic"


def members(group: Obj, around: RelatedCounts) -> str:
    """Bound pods, of those that exist or of those it takes, whichever is more."""
    meta = group["metadata"]
    bound, known = around.members(meta["namespace"], meta["name"])
    return f"{bound}/{max(known, at(group, 'spec', 'schedulingPolicy', 'gang', 'minCount') or 0)}"


def _condition(obj: Obj, suffix: str) -> Obj | None:
    for entry in at(obj, "status", "conditions") or ():
        if str(entry.get("type", "")).endswith(suffix):
            return entry
    return None


def group_status(obj: Obj, around: RelatedCounts) -> str:
    target = _condition(obj, "DisruptionTarget")
    if target is not None and target.get("status") == "True" and target.get("reason"):
        return target["reason"]
    scheduled = _condition(obj, "InitiallyScheduled")
    if scheduled is None:
        return "Pending"
    if scheduled.get("status") == "True":
        quorum = _condition(obj, "QuorumMet")
        return str(quorum.get("reason")) if quorum is not None and quorum.get("status") == "False" else "Scheduled"
    return "Invalid" if scheduled.get("reason") == "Invalid" else "Unschedulable"


def group_reason(obj: Obj, around: RelatedCounts) -> str:
    scheduled = _condition(obj, "InitiallyScheduled")
    if scheduled is None or scheduled.get("status") == "True":
        return NONE
    return scheduled.get("message") or scheduled.get("reason") or NONE


def topology(obj: Obj, around: RelatedCounts) -> str:
    keys = [entry.get("key", "") for entry in at(obj, "spec", "schedulingConstraints", "topology") or ()]
    return ",".join(keys) or NONE


def priority(obj: Obj, around: RelatedCounts) -> str:
    name, value = at(obj, "spec", "priorityClassName"), at(obj, "spec", "priority")
    if name:
        return f"{name} ({value})" if value is not None else name
    return "0" if value is None else str(value)


def children(obj: Obj, around: RelatedCounts) -> str:
    meta = obj["metadata"]
    return str(around.children(meta["namespace"], meta["name"]))


def templates(obj: Obj, around: RelatedCounts) -> int:
    return _count_templates(at(obj, "spec") or {})


def _count_templates(level: Obj) -> int:
    composites: list[Obj] = level.get("compositePodGroupTemplates") or []
    return len(level.get("podGroupTemplates") or ()) + sum(1 + _count_templates(entry) for entry in composites)


def made_for(obj: Obj, around: RelatedCounts) -> str:
    """The workload that a group was made for, as people name it; of one that was made by hand nothing."""
    labels: Obj = at(obj, "metadata", "labels") or {}
    kind, name = labels.get(OWNER_KIND), labels.get(OWNER_NAME)
    return f"{kind.lower()}/{name}" if kind and name else NONE


_POLICY = Column("Policy", policy, description="Gang: all or nothing. Basic: pod by pod.")
_WORKLOAD = Column("Workload", text("spec", "workloadRef", "workloadName", absent=NONE))
_STATUS = Column("Status", group_status, description="Pending, Scheduled, Unschedulable, or why it is disrupted.")
_WIDE = (
    Column("Reason", group_reason, wide=True, description="What the scheduler says about it."),
    Column("Topology", topology, wide=True, description="The domain that all of it must share."),
    Column("Priority", priority, wide=True),
    Column("Made for", made_for, wide=True, description="The workload that it was made for."),
)
POD_GROUPS = (
    NAME,
    _POLICY,
    _WORKLOAD,
    Column("Members", members, description="Pods that are bound, of those that exist or that it takes."),
    _STATUS,
    AGE,
    *_WIDE,
)
COMPOSITE_POD_GROUPS = (NAME, _POLICY, _WORKLOAD, Column("Children", children), _STATUS, AGE, *_WIDE)
WORKLOADS = (NAME, AGE, Column("Templates", templates, type="integer", wide=True))


# Apps


def ready_of_desired(obj: Obj, around: RelatedCounts) -> str:
    return f"{at(obj, 'status', 'readyReplicas') or 0}/{at(obj, 'spec', 'replicas') or 0}"


DEPLOYMENTS = (
    NAME,
    Column("Ready", ready_of_desired),
    Column("Up-to-date", number("status", "updatedReplicas"), type="integer"),
    Column("Available", number("status", "availableReplicas"), type="integer"),
    AGE,
    *_TEMPLATE,
    selector_column("spec", "selector"),
)
REPLICA_SETS = (
    NAME,
    Column("Desired", number("spec", "replicas"), type="integer"),
    Column("Current", number("status", "replicas"), type="integer"),
    Column("Ready", number("status", "readyReplicas"), type="integer"),
    AGE,
    *_TEMPLATE,
    selector_column("spec", "selector"),
)
STATEFUL_SETS = (NAME, Column("Ready", ready_of_desired), AGE, *_TEMPLATE)


def _node_selector(obj: Obj, around: RelatedCounts) -> str:
    chosen: Obj = at(obj, "spec", "template", "spec", "nodeSelector") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(chosen.items())) or NONE


DAEMON_SETS = (
    NAME,
    Column("Desired", number("status", "desiredNumberScheduled"), type="integer"),
    Column("Current", number("status", "currentNumberScheduled"), type="integer"),
    Column("Ready", number("status", "numberReady"), type="integer"),
    Column("Up-to-date", number("status", "updatedNumberScheduled"), type="integer"),
    Column("Available", number("status", "numberAvailable"), type="integer"),
    Column("Node Selector", _node_selector),
    AGE,
    *_TEMPLATE,
    selector_column("spec", "selector"),
)


def revision_owner(obj: Obj, around: RelatedCounts) -> str:
    for owner in at(obj, "metadata", "ownerReferences") or ():
        if owner.get("controller"):
            group = str(owner.get("apiVersion", "")).rpartition("/")[0]
            kind = str(owner.get("kind", "")).lower()
            return f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return NONE


CONTROLLER_REVISIONS = (
    NAME,
    Column("Controller", revision_owner),
    Column("Revision", number("revision"), type="integer"),
    AGE,
)


# Jobs


def job_status(job: Obj, around: RelatedCounts) -> str:
    for type, words in (("Complete", "Complete"), ("Failed", "Failed")):
        if _is_true(job, type):
            return words
    if at(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    for type in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if _is_true(job, type):
            return type
    return "Running"


def _is_true(obj: Obj, type: str) -> bool:
    return any(
        entry.get("type") == type and entry.get("status") == "True" for entry in at(obj, "status", "conditions") or ()
    )


def job_completions(job: Obj, around: RelatedCounts) -> str:
    done = at(job, "status", "succeeded") or 0
    wanted, parallel = at(job, "spec", "completions"), at(job, "spec", "parallelism") or 0
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def job_duration(job: Obj, around: RelatedCounts) -> str:
    start = epoch(at(job, "status", "startTime"))
    if start is None:
        return ""
    end = epoch(at(job, "status", "completionTime"))
    return duration((around.now if end is None else end) - start)


JOBS = (
    NAME,
    Column("Status", job_status),
    Column("Completions", job_completions),
    Column("Duration", job_duration),
    AGE,
    *_TEMPLATE,
    selector_column("spec", "selector"),
)


def _last_scheduled(obj: Obj, around: RelatedCounts) -> str:
    return NONE if not at(obj, "status", "lastScheduleTime") else age("status", "lastScheduleTime")(obj, around)


CRON_JOBS = (
    NAME,
    Column("Schedule", text("spec", "schedule")),
    Column("Timezone", text("spec", "timeZone", absent=NONE)),
    Column("Suspend", lambda obj, around: str(bool(at(obj, "spec", "suspend"))), type="boolean"),
    Column("Active", size("status", "active"), type="integer"),
    Column("Last Schedule", _last_scheduled),
    AGE,
    *containers("spec", "jobTemplate", "spec", "template", "spec", "containers"),
)


# Policy, priority, leases, storage, devices


def _or_not_given(*path: str) -> Any:
    return text(*path, absent="N/A")


POD_DISRUPTION_BUDGETS = (
    NAME,
    Column("Min Available", _or_not_given("spec", "minAvailable")),
    Column("Max Unavailable", _or_not_given("spec", "maxUnavailable")),
    Column("Allowed Disruptions", number("status", "disruptionsAllowed"), type="integer"),
    AGE,
)
PRIORITY_CLASSES = (
    NAME,
    Column("Value", number("value"), type="integer"),
    Column("Global-Default", lambda obj, around: bool(obj.get("globalDefault")), type="boolean"),
    AGE,
    Column("PreemptionPolicy", text("preemptionPolicy")),
)
LEASES = (NAME, Column("Holder", text("spec", "holderIdentity")), AGE)
STORAGE_CLASSES = (
    NAME,
    Column("Provisioner", text("provisioner")),
    Column("ReclaimPolicy", text("reclaimPolicy", absent="Delete")),
    Column("VolumeBindingMode", text("volumeBindingMode", absent="Immediate")),
    Column("AllowVolumeExpansion", lambda obj, around: bool(obj.get("allowVolumeExpansion")), type="boolean"),
    AGE,
)
CSI_NODES = (NAME, Column("Drivers", size("spec", "drivers"), type="integer"), AGE)
CSI_DRIVERS = (
    NAME,
    Column("AttachRequired", lambda obj, around: at(obj, "spec", "attachRequired") is not False, type="boolean"),
    Column("PodInfoOnMount", lambda obj, around: bool(at(obj, "spec", "podInfoOnMount")), type="boolean"),
    Column("StorageCapacity", lambda obj, around: bool(at(obj, "spec", "storageCapacity")), type="boolean"),
    Column("TokenRequests", lambda obj, around: UNSET if not at(obj, "spec", "tokenRequests") else "set"),
    Column("Modes", lambda obj, around: ",".join(at(obj, "spec", "volumeLifecycleModes") or ())),
    AGE,
)
CSI_CAPACITIES = (
    NAME,
    Column("StorageClassName", text("storageClassName")),
    Column("Capacity", text("capacity")),
    AGE,
)
VOLUME_ATTACHMENTS = (
    NAME,
    Column("Attacher", text("spec", "attacher")),
    Column("PV", text("spec", "source", "persistentVolumeName")),
    Column("Node", text("spec", "nodeName")),
    Column("Attached", lambda obj, around: bool(at(obj, "status", "attached")), type="boolean"),
    AGE,
)


def claim_state(obj: Obj, around: RelatedCounts) -> str:
    states = [
        "deleted" if at(obj, "metadata", "deletionTimestamp") else "",
        "allocated" if at(obj, "status", "allocation") else "",
        "reserved" if at(obj, "status", "reservedFor") else "",
    ]
    return ",".join(state for state in states if state) or "pending"


RESOURCE_CLAIMS = (NAME, Column("State", claim_state), AGE)
RESOURCE_SLICES = (
    NAME,
    Column("Node", text("spec", "nodeName")),
    Column("Driver", text("spec", "driver")),
    Column("Pool", text("spec", "pool", "name")),
    AGE,
)


def _subjects(kind: str) -> Any:
    def cell(obj: Obj, around: RelatedCounts) -> str:
        found = [entry for entry in obj.get("subjects") or () if entry.get("kind") == kind]
        names = [
            f"{entry['namespace']}/{entry['name']}" if entry.get("namespace") else entry["name"] for entry in found
        ]
        return ", ".join(names)

    return cell


ROLES = (NAME, Column("Created At", text("metadata", "creationTimestamp")))
ROLE_BINDINGS = (
    NAME,
    Column("Role", lambda obj, around: f"{at(obj, 'roleRef', 'kind')}/{at(obj, 'roleRef', 'name')}"),
    AGE,
    Column("Users", _subjects("User"), wide=True),
    Column("Groups", _subjects("Group"), wide=True),
    Column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
