"""What nodes may write: their own Node, without labels that others trust, their lease, and the status of their pods."""

from __future__ import annotations

from muster.api.errors import ApiError, forbidden
from muster.server.request import User, node_name
from muster.server.resources.kind import Obj, Reader, Write

RESERVED = "node-restriction.kubernetes.io"
_MIRROR = "kubernetes.io/config.mirror"
_OWN_LABELS = frozenset(
    (
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    )
)
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")


async def admit_own_node(write: Write, new: Obj, old: Obj | None) -> None:
    """For nodes: a node writes its own object only."""
    node = node_name(write.user)
    if not node:
        return
    if write.name != node:
        raise _refuse(write, f'node "{node}" is not allowed to modify node "{write.name}"')
    if write.operation == "DELETE":
        return
    labels, before = _labels(new), _labels(old or {})
    changed = {key for key in {*labels, *before} if labels.get(key) != before.get(key)}
    if denied := sorted(key for key in changed if not _may_set(key)):
        raise _refuse(write, f'node "{node}" is not allowed to modify labels: {", ".join(denied)}')
    if old is not None and (new.get("spec") or {}).get("taints") != (old.get("spec") or {}).get("taints"):
        raise _refuse(write, f'node "{node}" is not allowed to modify taints')
    if new["metadata"].get("ownerReferences") != ((old or {}).get("metadata") or {}).get("ownerReferences"):
        raise _refuse(write, f'node "{node}" is not allowed to modify ownerReferences')


async def admit_own_name(write: Write, new: Obj, old: Obj | None) -> None:
    """For leases of nodes and CSINodes: a node writes the one of its own name."""
    node = node_name(write.user)
    if node and write.name != node:
        noun = "lease" if write.kind.plural == "leases" else "CSINode"
        raise _refuse(write, f"can only access {noun} with the same name as the requesting node")


async def admit_own_pods(write: Write, new: Obj, old: Obj | None) -> None:
    """For pods: a node makes mirrors of pods that it runs by itself, and writes and deletes pods that run on it."""
    node = node_name(write.user)
    if not node:
        return
    placed: str = ((old if old is not None else new).get("spec") or {}).get("nodeName") or ""
    if write.operation == "CREATE":
        _check_mirror(write, node, new)
    elif placed != node:
        what = "delete pods" if write.operation == "DELETE" else "update pod status for pods"
        raise _refuse(write, f'node "{node}" can only {what} with spec.nodeName set to itself')
    elif write.operation == "UPDATE":
        if write.subresource != "status":
            raise _refuse(write, f'node "{node}" can only update the status of pods')
        if _labels(new) != _labels(old or {}):
            raise _refuse(write, f'node "{node}" cannot update labels through pod status')


def check_node_token(user: User, namespace: str, account: str, wanted: Obj, reader: Reader) -> None:
    """A node asks for tokens only of the accounts of its pods, bound to such a pod."""
    node = node_name(user)
    if not node:
        return
    bound: Obj = (wanted.get("spec") or {}).get("boundObjectRef") or {}
    if bound.get("kind") != "Pod" or not bound.get("name"):
        raise forbidden("", "serviceaccounts/token", account, "node requested token not bound to a pod")
    pod = reader.get("pods", "", namespace, str(bound["name"]))
    if pod is None or (pod.get("spec") or {}).get("nodeName") != node:
        why = "node requested token bound to a pod scheduled on a different node"
        raise forbidden("", "serviceaccounts/token", account, why)


def _check_mirror(write: Write, node: str, pod: Obj) -> None:
    spec: Obj = pod.get("spec") or {}
    if _MIRROR not in (pod["metadata"].get("annotations") or {}):
        raise _refuse(write, f'pod does not have "{_MIRROR}" annotation, node "{node}" can only create mirror pods')
    if spec.get("nodeName") != node:
        raise _refuse(write, f'node "{node}" can only create pods with spec.nodeName set to itself')
    sources = ("secret", "configMap", "persistentVolumeClaim", "projected")
    if any(volume.get(key) is not None for volume in spec.get("volumes") or () for key in sources):
        raise _refuse(write, f'node "{node}" can not create pods that reference other objects')


def _may_set(key: str) -> bool:
    """Whether a node may set a label of its own: known ones, and those outside the domains of Kubernetes."""
    domain = key.partition("/")[0] if "/" in key else ""
    if domain == RESERVED or domain.endswith(f".{RESERVED}"):
        return False
    if any(domain == own or domain.endswith(f".{own}") for own in _OWN_DOMAINS) or key in _OWN_LABELS:
        return True
    return not any(domain == one or domain.endswith(f".{one}") for one in ("kubernetes.io", "k8s.io"))


def _labels(obj: Obj) -> Obj:
    return (obj.get("metadata") or {}).get("labels") or {}


def _refuse(write: Write, why: str) -> ApiError:
    return forbidden(write.kind.group, write.kind.plural, write.name, why)
