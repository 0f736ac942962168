"""The words of the OpenAPI documents for built-in kinds: one sentence a kind, and one for the fields that all have.

The group kinds bring their own words, in `muster.api.openapi`. `MESSAGES` has those of the messages that belong to
gangs in other kinds (`pod.spec.schedulingGroup`, `job.spec.scheduling`), and of the metadata that all objects share.
"""

from collections.abc import Mapping
from typing import NamedTuple

from muster.api.descriptions import TEXTS

KIND = "The kind of object, in CamelCase. The endpoint may imply it."
API_VERSION = "APIVersion defines the group and the version of the API that this object is written in."

FIELDS = {
    "kind": KIND,
    "apiVersion": API_VERSION,
    "metadata": "Standard object's metadata: names, labels, owners and what else every object has.",
    "spec": "What should be: the wanted state.",
    "status": "What is: the state last seen, written by the system.",
    "items": "The objects of the list.",
}

KINDS = {
    "Binding": "Binding ties a pod to the node that it will run on.",
    "ConfigMap": "ConfigMap holds configuration for pods to read.",
    "Endpoints": "Endpoints lists the addresses behind a service.",
    "Event": "Event reports something that happened to an object.",
    "LimitRange": "LimitRange bounds what pods and containers of a namespace may ask for.",
    "Namespace": "Namespace is a scope for names.",
    "Node": "Node is a machine that runs pods.",
    "PersistentVolume": "PersistentVolume is storage that outlives pods.",
    "PersistentVolumeClaim": "PersistentVolumeClaim asks for a persistent volume.",
    "Pod": "Pod is a set of containers that run together on one node.",
    "PodTemplate": "PodTemplate describes pods to be made.",
    "ReplicationController": "ReplicationController keeps a number of equal pods running.",
    "ResourceQuota": "ResourceQuota limits what a namespace may use in total.",
    "Secret": "Secret holds a small amount of sensitive data.",
    "Service": "Service gives a set of pods one name and address.",
    "ServiceAccount": "ServiceAccount is the identity of a program.",
    "ControllerRevision": "ControllerRevision keeps one revision of a controller's state.",
    "DaemonSet": "DaemonSet runs one pod on every chosen node.",
    "Deployment": "Deployment keeps equal pods running and rolls out changes to them.",
    "ReplicaSet": "ReplicaSet keeps a number of equal pods running.",
    "StatefulSet": "StatefulSet keeps pods with stable names and storage running.",
    "CronJob": "CronJob starts jobs by the clock.",
    "Job": "Job runs pods until enough of them have succeeded.",
    "Eviction": "Eviction asks for a pod to leave its node, within its disruption budget.",
    "PodDisruptionBudget": "PodDisruptionBudget says how many pods of a set may be disrupted at once.",
    "PriorityClass": "PriorityClass gives a priority a name.",
    "Lease": "Lease is a lock that expires, held for instance by a leader.",
    "EndpointSlice": "EndpointSlice lists some of the endpoints behind a service.",
    "CSIDriver": "CSIDriver tells how a storage driver wants to be used.",
    "CSINode": "CSINode lists the storage drivers of one node.",
    "CSIStorageCapacity": "CSIStorageCapacity tells how much storage is left in one part of the cluster.",
    "StorageClass": "StorageClass describes a kind of storage to provision.",
    "VolumeAttachment": "VolumeAttachment asks for a volume to be attached to a node.",
    "DeviceClass": "DeviceClass describes a kind of device to allocate.",
    "ResourceClaim": "ResourceClaim asks for devices.",
    "ResourceClaimTemplate": "ResourceClaimTemplate describes the resource claims to be made for pods.",
    "ResourceSlice": "ResourceSlice lists devices that a driver offers.",
    "ClusterRole": "ClusterRole is a set of rights in the whole cluster.",
    "ClusterRoleBinding": "ClusterRoleBinding gives a cluster role to users.",
    "Role": "Role is a set of rights in a namespace.",
    "RoleBinding": "RoleBinding gives a role to users, in one namespace.",
    "SelfSubjectReview": "SelfSubjectReview tells who the asker is.",
    "TokenRequest": "TokenRequest asks for a token of a service account.",
    "TokenReview": "TokenReview asks whose token this is.",
    "LocalSubjectAccessReview": "LocalSubjectAccessReview asks whether somebody may do something in one namespace.",
    "SelfSubjectAccessReview": "SelfSubjectAccessReview asks whether the asker may do something.",
    "SelfSubjectRulesReview": "SelfSubjectRulesReview asks what the asker may do in a namespace.",
    "SubjectAccessReview": "SubjectAccessReview asks whether somebody may do something.",
    "Scale": "Scale is the wanted and the present number of replicas of another object.",
    "Status": "Status is the outcome of a call that does not return an object.",
    "DeleteOptions": "DeleteOptions says how to delete.",
}

PARAMETERS = {
    "dryRun": "All: go through every step of the write except storing it.",
    "fieldManager": "The name under which the fields of this write are owned. Apply needs one.",
    "fieldValidation": "What to do with unknown and repeated fields: Ignore, Warn (the default) or Strict.",
    "force": "Take fields over from other managers; for apply only.",
    "pretty": "Indent the answer.",
    "labelSelector": "Only objects whose labels match.",
    "fieldSelector": "Only objects whose fields match.",
    "limit": "At most this many objects; the answer says how to go on.",
    "continue": "Go on with an earlier list.",
    "resourceVersion": "The revision to start from.",
    "resourceVersionMatch": "How resourceVersion is meant: Exact or NotOlderThan.",
    "sendInitialEvents": "Begin a watch with the present objects.",
    "timeoutSeconds": "End the call after this time.",
    "watch": "Stream changes instead of listing.",
    "allowWatchBookmarks": "Send bookmarks in a watch.",
    "gracePeriodSeconds": "How long the object has to end; 0 is at once.",
    "propagationPolicy": "What happens to dependents: Orphan, Background or Foreground.",
    "orphanDependents": "The old form of propagationPolicy.",
    "name": "The name of the object.",
    "namespace": "The namespace of the object.",
}


class Words(NamedTuple):
    """What is said of a message and of its fields; a field that is left out is not described."""

    description: str
    fields: Mapping[str, str] = {}


_HUB = "io.k8s.api.scheduling.v1alpha3"
_EMBEDDED = f"{_HUB}.WorkloadPodGroup"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SINGLE = "Parts of the group may be disrupted alone; it has no fields."
_ALL = "The group is disrupted as a whole or not at all; it has no fields."


def _of(struct: str, *fields: str) -> Words:
    """The words that a type of the group kinds has there."""
    return Words(TEXTS[struct], {field: TEXTS[f"{struct}.{field}"] for field in fields})


MESSAGES: Mapping[str, Words] = {
    "io.k8s.api.core.v1.PodSpec": Words(
        "",
        {
            "schedulingGroup": (
                "The group that the pod is scheduled with. It is set when the pod is created and cannot change. Without"
                " it the pod is scheduled on its own."
            )
        },
    ),
    "io.k8s.api.core.v1.PodSchedulingGroup": Words(
        "PodSchedulingGroup names the group that a pod belongs to.",
        {
            "podGroupName": (
                "The name of a PodGroup in the pod's namespace. The group may be created later; until it exists the pod"
                " waits."
            )
        },
    ),
    "io.k8s.api.batch.v1.JobSpec": Words(
        "",
        {
            "scheduling": (
                "How the pods of the Job are scheduled as a group. The Job controller makes a Workload and a PodGroup"
                " of it before the first pod. It cannot be set or cleared later; only the minimum of a gang can change."
            )
        },
    ),
    "io.k8s.api.batch.v1.JobSchedulingConfiguration": Words(
        "JobSchedulingConfiguration says what the PodGroup of a Job looks like.",
        {
            "schedulingPolicy": (
                "How the pods are scheduled: exactly one of basic and gang. Where it is left out, an Indexed Job that"
                " runs all of its pods at once is a gang, and any other Job is basic; the annotation"
                " scheduling.muster.dev/gang overrides that."
            ),
            "schedulingConstraints": TEXTS["PodGroupSpec.schedulingConstraints"],
            "disruptionMode": TEXTS["PodGroupSpec.disruptionMode"] + " With all, the policy must be gang.",
            "resourceClaims": TEXTS["PodGroupSpec.resourceClaims"],
        },
    ),
    f"{_EMBEDDED}SchedulingPolicy": _of("SchedulingPolicy", "basic", "gang"),
    f"{_EMBEDDED}BasicSchedulingPolicy": _of("Empty"),
    f"{_EMBEDDED}GangSchedulingPolicy": Words(
        TEXTS["GangPolicy"],
        {
            "minCount": (
                "How many pods must have a place at the same time before any of them starts; at least 1 and at most the"
                " Job's parallelism. Where it is left out: all pods that the Job runs at once."
            )
        },
    ),
    f"{_EMBEDDED}SchedulingConstraints": _of("SchedulingConstraints", "topology"),
    f"{_EMBEDDED}DisruptionMode": _of("DisruptionMode", "single", "all"),
    f"{_EMBEDDED}SingleDisruptionMode": Words(_SINGLE),
    f"{_EMBEDDED}AllDisruptionMode": Words(_ALL),
    f"{_EMBEDDED}ResourceClaim": _of("GroupResourceClaim", "name", "resourceClaimName", "resourceClaimTemplateName"),
    f"{_HUB}.TopologyConstraint": _of("TopologyConstraint", "key"),
    **{
        f"io.k8s.api.scheduling.{version}.{name}": Words(words)
        for version in ("v1alpha3", "v1beta1")
        for name, words in (
            ("SingleDisruptionMode", _SINGLE),
            ("AllDisruptionMode", _ALL),
            ("SingleCompositeDisruptionMode", _SINGLE),
            ("AllCompositeDisruptionMode", _ALL),
        )
    },
    f"{_META}.OwnerReference": Words(
        "OwnerReference names an object that this one belongs to: it is deleted when all of its owners are.",
        {
            "apiVersion": "The group and version of the owner.",
            "kind": "The kind of the owner.",
            "name": "The name of the owner, in the same namespace or without one.",
            "uid": "The uid of the owner.",
            "controller": "Whether the owner is the one that manages this object; at most one is.",
            "blockOwnerDeletion": "Whether an owner that is deleted in the foreground waits for this object.",
        },
    ),
    f"{_META}.ManagedFieldsEntry": Words(
        "ManagedFieldsEntry says which fields one writer has set.",
        {
            "apiVersion": "The version of the object in which the fields are named.",
            "fieldsType": "How the fields are written down; always FieldsV1.",
            "fieldsV1": "The set of fields.",
            "manager": "The writer.",
            "operation": "Apply, or Update for every other kind of write.",
            "subresource": "The subresource that was written, empty for the object itself.",
            "time": "When the entry was last changed.",
        },
    ),
}
