"""What every field of the group kinds means, in the words that `kubectl explain` shows.

Keys are a struct's name, or the struct's name and the JSON name of one of its fields.
"""

from __future__ import annotations

from collections.abc import Mapping

_PRIORITY_CLASS = (
    "The name of the PriorityClass of the group. Where it is left out, the cluster's default class is taken, or"
    " priority 0 where there is none. It cannot change."
)
_PRIORITY = (
    "The priority of the group, at most 1000000000. The server fills it in from the priority class; a different value"
    " is refused. Every pod of a hierarchy must have exactly the priority of its root group. It cannot change."
)
_PREEMPTION_POLICY = (
    "Whether the group may evict groups and pods of lower priority to get its room: PreemptLowerPriority (the"
    " default) or Never. Where it is left out, the policy of the priority class is taken. It cannot change."
)
_TOPOLOGY = (
    "Where the group may be placed as a whole: all of its pods go into one domain of the topology named here. It"
    " cannot change."
)
_MODE = (
    "How the group may be disrupted, by preemption for instance: pod by pod (single, the default) or only as a whole"
    " (all). It cannot change."
)
_CLAIMS = "Resource claims shared by the pods of the group, at most 4. A pod uses one by declaring an equal entry."
_PARENT = (
    "The name of the CompositePodGroup, in the same namespace, that this group is a child of. The parent may be created"
    " later; until it exists the group waits. It cannot change."
)
_TEMPLATE_PRIORITY_CLASS = (
    "The name of the PriorityClass for groups made from this template. All templates of a Workload must agree."
)
_TEMPLATE_PRIORITY = "The priority for groups made from this template. All templates of a Workload must agree."
_API_VERSION = "The version of the schema that this object is written in, such as scheduling.k8s.io/v1beta1."
_KIND = "The kind of this object."
_KINDS = ("Workload", "PodGroup", "CompositePodGroup")
_METADATA = "The object's name, namespace, labels and everything else that all objects have."

_OWN: Mapping[str, str] = {
    "Workload": (
        "Workload describes the parts of an application and how each of them wants to be scheduled. It is a bag of"
        " templates: controllers make PodGroups and CompositePodGroups from it; the scheduler does not read it."
    ),
    "WorkloadSpec": "WorkloadSpec holds the templates: either a flat list or a list of trees, not both.",
    "WorkloadSpec.controllerRef": (
        "The object that this Workload describes, such as a Job. It is for tools and people and cannot change."
    ),
    "WorkloadSpec.podGroupTemplates": (
        "Templates of independent PodGroups, at most 8. Exactly one of podGroupTemplates and compositePodGroupTemplates"
        " must be set. Items cannot be added, removed or renamed."
    ),
    "WorkloadSpec.compositePodGroupTemplates": (
        "Templates of trees of groups, at most 8. A tree has at most four levels, the last of them PodGroupTemplates."
        " Items cannot be added, removed or renamed."
    ),
    "TypedReference": "TypedReference names one object in the same namespace.",
    "TypedReference.apiGroup": "The API group of the object; empty means the core group.",
    "TypedReference.kind": "The kind of the object.",
    "TypedReference.name": "The name of the object.",
    "PodGroupTemplate": "PodGroupTemplate says what a PodGroup made from it looks like.",
    "PodGroupTemplate.name": "The name of the template, a DNS label that is unique in the whole Workload.",
    "PodGroupTemplate.schedulingPolicy": "How the pods of a group made from this template are scheduled.",
    "PodGroupTemplate.schedulingConstraints": _TOPOLOGY,
    "PodGroupTemplate.resourceClaims": _CLAIMS,
    "PodGroupTemplate.disruptionMode": _MODE,
    "PodGroupTemplate.priorityClassName": _TEMPLATE_PRIORITY_CLASS,
    "PodGroupTemplate.priority": _TEMPLATE_PRIORITY,
    "PodGroupTemplate.preemptionPolicy": _PREEMPTION_POLICY,
    "CompositePodGroupTemplate": (
        "CompositePodGroupTemplate says what a CompositePodGroup made from it looks like, and which groups belong to"
        " it. It needs at least one child. If it is disrupted as a whole (all), so are all of its children."
    ),
    "CompositePodGroupTemplate.name": "The name of the template, a DNS label that is unique in the whole Workload.",
    "CompositePodGroupTemplate.schedulingPolicy": "How the children of a group made from this template are scheduled.",
    "CompositePodGroupTemplate.schedulingConstraints": _TOPOLOGY,
    "CompositePodGroupTemplate.disruptionMode": _MODE,
    "CompositePodGroupTemplate.priorityClassName": _TEMPLATE_PRIORITY_CLASS,
    "CompositePodGroupTemplate.priority": _TEMPLATE_PRIORITY,
    "CompositePodGroupTemplate.preemptionPolicy": _PREEMPTION_POLICY,
    "CompositePodGroupTemplate.podGroupTemplates": "The children that hold pods, at most 8.",
    "CompositePodGroupTemplate.compositePodGroupTemplates": "The children that hold groups, at most 8.",
    "PodGroup": (
        "PodGroup is a set of pods that are scheduled together. A pod joins it with spec.schedulingGroup.podGroupName."
        " A gang starts only when enough of its pods can start at the same time; until then none of them does."
    ),
    "PodGroupSpec": "PodGroupSpec says how the pods of the group are scheduled.",
    "PodGroupSpec.parentCompositePodGroupName": _PARENT + " It needs workloadRef.",
    "PodGroupSpec.workloadRef": "The template that this group was made from. It is not checked and cannot change.",
    "PodGroupSpec.podGroupTemplateRef": "The template that this group was made from. It is not checked.",
    "PodGroupSpec.schedulingPolicy": "How the pods of the group are scheduled: exactly one of basic and gang.",
    "PodGroupSpec.schedulingConstraints": _TOPOLOGY,
    "PodGroupSpec.resourceClaims": _CLAIMS,
    "PodGroupSpec.disruptionMode": _MODE,
    "PodGroupSpec.priorityClassName": _PRIORITY_CLASS,
    "PodGroupSpec.priority": _PRIORITY,
    "PodGroupSpec.preemptionPolicy": _PREEMPTION_POLICY,
    "PodGroupStatus": "PodGroupStatus is what the scheduler last reported.",
    "PodGroupStatus.conditions": (
        "What is known about the group. PodGroupInitiallyScheduled (PodGroupScheduled in v1alpha2) is True for ever"
        " once enough pods had a place, and says why while they have none; DisruptionTarget says that the group is"
        " about to be evicted."
    ),
    "PodGroupStatus.resourceClaimStatuses": "The claims that were made for the entries of spec.resourceClaims.",
    "CompositePodGroup": (
        "CompositePodGroup is a set of groups that are scheduled together. Its children, PodGroups or other"
        " CompositePodGroups, name it in spec.parentCompositePodGroupName. A whole tree is scheduled in one step."
    ),
    "CompositePodGroupSpec": "CompositePodGroupSpec says how the children of the group are scheduled.",
    "CompositePodGroupSpec.parentCompositePodGroupName": _PARENT,
    "CompositePodGroupSpec.workloadRef": "The template that this group was made from. It must be set, cannot change,"
    " and is not checked.",
    "CompositePodGroupSpec.schedulingPolicy": (
        "How the children of the group are scheduled: exactly one of basic and gang. It cannot change."
    ),
    "CompositePodGroupSpec.schedulingConstraints": _TOPOLOGY,
    "CompositePodGroupSpec.disruptionMode": _MODE,
    "CompositePodGroupSpec.priorityClassName": _PRIORITY_CLASS,
    "CompositePodGroupSpec.priority": _PRIORITY,
    "CompositePodGroupSpec.preemptionPolicy": _PREEMPTION_POLICY,
    "CompositePodGroupStatus": "CompositePodGroupStatus is what the scheduler last reported.",
    "CompositePodGroupStatus.conditions": (
        "What is known about the group: CompositePodGroupInitiallyScheduled with reason Scheduled, Unschedulable,"
        " SchedulerError or Invalid, and DisruptionTarget."
    ),
    "SchedulingPolicy": "SchedulingPolicy is how the pods of one group are scheduled.",
    "SchedulingPolicy.basic": "Each pod is scheduled when it fits, as if it were alone. Cannot change later.",
    "SchedulingPolicy.gang": "At least minCount pods start together, or none. Cannot be set or cleared later.",
    "CompositeSchedulingPolicy": "CompositeSchedulingPolicy is how the children of a composite group are scheduled.",
    "CompositeSchedulingPolicy.basic": "Each child is scheduled when it fits; the others need not.",
    "CompositeSchedulingPolicy.gang": "At least minGroupCount children start together, or none.",
    "Empty": "Says by being there that this variant is meant; it has no fields.",
    "GangPolicy": "GangPolicy is all or nothing for pods.",
    "GangPolicy.minCount": "How many pods must have a place at the same time before any of them starts; at least 1.",
    "CompositeGangPolicy": "CompositeGangPolicy is all or nothing for groups.",
    "CompositeGangPolicy.minGroupCount": "How many children must succeed at the same time; at least 1.",
    "SchedulingConstraints": "SchedulingConstraints limits where the group as a whole may be placed.",
    "SchedulingConstraints.topology": "The topology whose domains the group must not span; at most one.",
    "TopologyConstraint": "TopologyConstraint names one topology.",
    "TopologyConstraint.key": (
        "A node label, such as topology.kubernetes.io/zone. Nodes with equal values are one domain; nodes without the"
        " label belong to none."
    ),
    "DisruptionMode": "DisruptionMode is how a group may be disrupted: exactly one of single and all.",
    "DisruptionMode.single": "Parts of the group may be disrupted alone.",
    "DisruptionMode.all": "The group is disrupted as a whole or not at all.",
    "WorkloadReference": "WorkloadReference names one template of one Workload.",
    "WorkloadReference.workloadName": "The name of the Workload, in the same namespace.",
    "WorkloadReference.templateName": "The name of the template in it.",
    "GroupResourceClaim": "GroupResourceClaim is one claim of a group: exactly one of the two sources is set.",
    "GroupResourceClaim.name": "The name of the claim within the group.",
    "GroupResourceClaim.resourceClaimName": "The name of an existing ResourceClaim.",
    "GroupResourceClaim.resourceClaimTemplateName": "The name of a template to make a ResourceClaim from.",
    "GroupResourceClaimStatus": "GroupResourceClaimStatus says which claim an entry of spec.resourceClaims got.",
    "GroupResourceClaimStatus.name": "The name of the entry in spec.resourceClaims.",
    "GroupResourceClaimStatus.resourceClaimName": "The name of the ResourceClaim that was made for it.",
    "Condition": "Condition is one thing that is known about an object.",
    "Condition.type": "What the condition is about, in CamelCase.",
    "Condition.status": "True, False or Unknown.",
    "Condition.reason": "Why, in one CamelCase word for programs.",
    "Condition.message": "Why, in a sentence for people.",
    "Condition.lastTransitionTime": "When the status last changed.",
    "Condition.observedGeneration": "The generation of the object that the condition speaks of.",
}

TEXTS: Mapping[str, str] = {
    **_OWN,
    **{f"{kind}.apiVersion": _API_VERSION for kind in _KINDS},
    **{f"{kind}.kind": _KIND for kind in _KINDS},
    **{f"{kind}.metadata": _METADATA for kind in _KINDS},
    **{f"{kind}.spec": _OWN[f"{kind}Spec"] for kind in _KINDS},
    **{f"{kind}.status": _OWN[f"{kind}Status"] for kind in _KINDS if f"{kind}Status" in _OWN},
}
