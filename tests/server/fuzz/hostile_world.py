"""A server in memory with one valid object of every kind, and the contract that every answer has to keep.

The server lives through all cases of a test module: what earlier cases left behind is part of the attack.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muster.certificates import Authority
from muster.plane.api import Api
from muster.server.auth.rules import Action
from muster.server.request import ADMIN, JSON, Request, Response, User, WatchStream
from muster.server.resources.kind import Kind
from muster.server.served_kinds import build_registry

Obj = dict[str, Any]
LABELS = {"app": "x"}
_POD = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
_TEMPLATE = {"metadata": {"labels": LABELS}, "spec": _POD}
_SELECTED = {"selector": {"matchLabels": LABELS}, "template": _TEMPLATE}
_GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}
_REFERENCE = {"workloadRef": {"workloadName": "w", "templateName": "t"}}
_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_DEVICES = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "victim"}}]}}
_ELSEWHERE = {
    "resourceRules": [
        {"apiGroups": ["example.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}
    ]
}

# A small valid object of every kind, without its metadata.
VALID: dict[str, Obj] = {
    "Pod": {"spec": _POD},
    "Secret": {"data": {"key": "dmFsdWU="}},
    "ConfigMap": {"data": {"key": "value"}},
    "Service": {"spec": {"ports": [{"port": 80}], "selector": LABELS}},
    "PersistentVolume": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "ReplicationController": {"spec": {"selector": LABELS, "template": _TEMPLATE}},
    "PodTemplate": {"template": _TEMPLATE},
    "Deployment": {"spec": _SELECTED},
    "ReplicaSet": {"spec": _SELECTED},
    "StatefulSet": {"spec": {**_SELECTED, "serviceName": "s"}},
    "DaemonSet": {"spec": _SELECTED},
    "ControllerRevision": {"revision": 1},
    "Job": {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}},
    "CronJob": {
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}},
        }
    },
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}}},
    "PriorityClass": {"value": 10},
    "Workload": {"spec": {"podGroupTemplates": [{"name": "t", **_GANG}]}},
    "PodGroup": {"spec": _GANG},
    "CompositePodGroup": {"spec": {**_REFERENCE, "schedulingPolicy": {"gang": {"minGroupCount": 1}}}},
    "Lease": {"spec": {"leaseDurationSeconds": 15}},
    "EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    "StorageClass": {"provisioner": "example.com/p"},
    "CSINode": {"spec": {"drivers": []}},
    "CSIDriver": {"spec": {"attachRequired": True}},
    "CSIStorageCapacity": {"storageClassName": "victim"},
    "VolumeAttachment": {"spec": {"attacher": "a", "nodeName": "victim", "source": {"persistentVolumeName": "victim"}}},
    "ResourceClaim": {"spec": _DEVICES},
    "ResourceClaimTemplate": {"spec": {"spec": _DEVICES}},
    "ResourceSlice": {
        "spec": {
            "driver": "d.example.com",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "victim",
        }
    },
    "DeviceClass": {"spec": {}},
    "DeviceTaintRule": {"spec": {"taint": {"key": "k", "effect": "NoSchedule"}}},
    "Role": {"rules": _RULES},
    "ClusterRole": {"rules": _RULES},
    "RoleBinding": {"roleRef": _ROLE, "subjects": [{"kind": "User", "name": "u"}]},
    "ClusterRoleBinding": {"roleRef": _ROLE, "subjects": [{"kind": "User", "name": "u"}]},
    "SubjectAccessReview": {"spec": {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}}},
    "SelfSubjectAccessReview": {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}},
    "LocalSubjectAccessReview": {
        "spec": {"user": "u", "resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}}
    },
    "SelfSubjectRulesReview": {"spec": {"namespace": "default"}},
    "TokenReview": {"spec": {"token": "t"}},
    "Event": {},
    "HorizontalPodAutoscaler": {
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "victim"}}
    },
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "victim", "port": {"number": 80}}}}},
    "IngressClass": {"spec": {"controller": "example.com/c"}},
    "IPAddress": {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "victim"}}},
    "ServiceCIDR": {"spec": {"cidrs": ["10.96.0.0/16"]}},
    "RuntimeClass": {"handler": "h"},
    "FlowSchema": {"spec": {"priorityLevelConfiguration": {"name": "victim"}}},
    "PriorityLevelConfiguration": {"spec": {"type": "Exempt"}},
    "MutatingAdmissionPolicy": {
        "spec": {
            "matchConstraints": _ELSEWHERE,
            "reinvocationPolicy": "Never",
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/a', value: 1}]"}}
            ],
        }
    },
    "MutatingAdmissionPolicyBinding": {"spec": {"policyName": "victim"}},
    "ValidatingAdmissionPolicy": {"spec": {"matchConstraints": _ELSEWHERE, "validations": [{"expression": "true"}]}},
    "ValidatingAdmissionPolicyBinding": {"spec": {"policyName": "victim", "validationActions": ["Deny"]}},
}


def a_signing_request() -> str:
    """A request for a certificate, as JSON holds it."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "victim")])
    built = x509.CertificateSigningRequestBuilder().subject_name(name)
    made = built.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def a_valid(kind: Kind, name: str = "victim") -> Obj:
    """An object that the server takes."""
    metadata: Obj = {"name": name, "labels": LABELS}
    body = VALID.get(kind.kind, {})
    if kind.kind == "CustomResourceDefinition":
        metadata["name"] = f"{name}s.example.com"
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        names = {"plural": f"{name}s", "kind": name.capitalize()}
        versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
        body = {"spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions}}
    if kind.kind == "IPAddress":
        metadata["name"] = "10.96.0.1" if name == "victim" else "10.96.0.2"
    if kind.kind == "APIService":
        metadata["name"] = f"v1.{name}.example.com"
        body = {
            "spec": {"group": f"{name}.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
        }
    if kind.kind == "CertificateSigningRequest":
        spec = {"request": a_signing_request(), "signerName": "example.com/s", "usages": ["client auth"]}
        body = {"spec": spec}
    if kind.kind == "ClusterTrustBundle":
        body = {"spec": {"trustBundle": Authority.create().pem.decode()}}
    if kind.kind == "Event":
        place = {"kind": "Pod", "namespace": "default", "name": "victim"}
        event: Obj = {"regarding": place, "eventTime": "2026-01-01T00:00:00.000000Z", "action": "a", "reason": "r"}
        event |= {"reportingController": "c.example.com/c", "reportingInstance": "i", "type": "Normal"}
        body = event if kind.group else {"involvedObject": place, "reason": "r", "type": "Normal"}
    return msgspec.json.decode(msgspec.json.encode({"metadata": metadata, **body}))


def collection(kind: Kind, version: str, namespace: str = "default") -> str:
    root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


class World:
    """The server, its event loop, and how to ask it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.api = self.loop.run_until_complete(Api.open())
        self.kinds = self.api.core.registry.kinds
        self.stored = [kind for kind in self.kinds if kind.answer is None]
        for kind in self.stored:
            for name in ("victim", "other"):
                answer = self.ask("POST", collection(kind, kind.versions[0]), a_valid(kind, name))
                assert answer is not None
                assert answer.status == 201 or kind.alternate is not None, (kind.kind, answer.body)

    def close(self) -> None:
        self.loop.run_until_complete(self.api.close())
        self.loop.close()

    def ask(
        self,
        method: str,
        path: str,
        body: Any = b"",
        content: str = JSON,
        query: Mapping[str, str] | None = None,
        accept: str = "",
    ) -> Response | None:
        """Ask, check the contract, and give the answer; None when it was a watch, which is looked at and closed."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        headers = {"content-type": content, "accept": accept, "user-agent": "fuzz/1"}
        request = Request(method, path, {name: (value,) for name, value in (query or {}).items()}, headers, data, ADMIN)
        answer = self.loop.run_until_complete(self._answer(request))
        if answer is not None:
            check(request, answer)
        return answer

    async def _answer(self, request: Request) -> Response | None:
        answer = await self.api.core.handle(request)
        if isinstance(answer, Response):
            return answer
        await _look_at(answer)
        return None

    def check_what_is_stored(self) -> None:
        """Every object can be read back in every version and form, and written back as it is."""
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        for kind in self.stored:
            for version in kind.versions:
                for accept in ("", table):
                    answer = self.ask("GET", collection(kind, version), accept=accept)
                    assert answer is not None
                    assert answer.status == 200, (kind.kind, answer.body)
        rights = self.api.security.authorizer
        assert rights.allows(ADMIN, Action("get", "", "pods"))
        assert not rights.allows(User("nobody"), Action("get", "", "pods"))
        assert list(rights.policy.outdated_aggregates()) is not None


async def _look_at(stream: WatchStream) -> None:
    frames: Any = stream.frames
    try:
        async with asyncio.timeout(0.005):
            first = await anext(frames, b"")
    except TimeoutError:
        return
    finally:
        await frames.aclose()
    for line in first.splitlines():
        assert msgspec.json.decode(line)["type"] in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")


def check(request: Request, answer: Response) -> None:
    """Never a fault of the server; every refusal a Status that says why; every success readable."""
    asked = f"{request.method} {request.path}?{dict(request.query)} {dict(request.headers)} {request.body[:2000]!r}"
    allowed = answer.status < 500 or _waited_for_the_future(answer) or _too_many_budgets(answer)
    assert allowed, f"{asked}\n{answer.status} {answer.body!r}"
    if answer.status < 400:
        if answer.content_type.startswith(JSON) and answer.body:
            msgspec.json.decode(answer.body)
        return
    status = msgspec.json.decode(answer.body)
    assert status["kind"] == "Status", asked
    assert status["apiVersion"] == "v1", asked
    assert status["status"] == "Failure", asked
    assert status["code"] == answer.status, asked
    assert status["reason"], asked
    assert status["message"], asked


def _waited_for_the_future(answer: Response) -> bool:
    return answer.status == 504 and b"ResourceVersionTooLarge" in answer.body


def _too_many_budgets(answer: Response) -> bool:
    """Kubernetes itself calls this state of the cluster an internal error."""
    return answer.status == 500 and b"This pod has more than one PodDisruptionBudget" in answer.body


def known_kinds() -> list[Kind]:
    return [kind for kind in build_registry().kinds if kind.answer is None]
