"""The kinds that extend the API: webhooks, policies and their bindings, and APIServices.

Part of the list in `muster.server.served_kinds`; `server.admission.dynamic` acts on webhooks and policies.
"""

from __future__ import annotations

from functools import partial

from muster.server.resources.columns import AGE, NAME, UNSET, at
from muster.server.resources.kind import Column, Kind, Obj, RelatedCounts

_admission = partial(
    Kind,
    "admissionregistration.k8s.io",
    ("v1",),
    namespaced=False,
    categories=("api-extensions",),
    generation=True,
)


def _count(*path: str) -> Column:
    def cell(obj: Obj, around: RelatedCounts) -> int:
        return len(at(obj, *path) or ())

    return Column(path[-1].capitalize(), cell, "integer")


def _param_kind(obj: Obj, around: RelatedCounts) -> str:
    kind = at(obj, "spec", "paramKind")
    return f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else UNSET


def _param_ref(obj: Obj, around: RelatedCounts) -> str:
    ref = at(obj, "spec", "paramRef")
    if not ref:
        return UNSET
    if not ref.get("name"):
        return "*" if not ref.get("namespace") else f"{ref['namespace']}/*"
    return f"{ref['namespace']}/{ref['name']}" if ref.get("namespace") else ref["name"]


def _policy_name(obj: Obj, around: RelatedCounts) -> str:
    return at(obj, "spec", "policyName") or ""


def _service(obj: Obj, around: RelatedCounts) -> str:
    service = at(obj, "spec", "service")
    return f"{service.get('namespace')}/{service.get('name')}" if service else "Local"


def _available(obj: Obj, around: RelatedCounts) -> str:
    found = next((each for each in at(obj, "status", "conditions") or () if each.get("type") == "Available"), None)
    if found is None:
        return "Unknown"
    return "True" if found.get("status") == "True" else f"{found.get('status')} ({found.get('reason')})"


_BINDING = (NAME, Column("PolicyName", _policy_name), Column("ParamRef", _param_ref), AGE)

ADMISSION_KINDS: tuple[Kind, ...] = (
    _admission(
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        columns=(NAME, _count("webhooks"), AGE),
    ),
    _admission(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        columns=(NAME, _count("webhooks"), AGE),
    ),
    _admission(
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
        columns=(NAME, _count("spec", "mutations"), Column("ParamKind", _param_kind), AGE),
    ),
    _admission("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", columns=_BINDING),
    _admission(
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        subresources=("status",),
        columns=(NAME, _count("spec", "validations"), Column("ParamKind", _param_kind), AGE),
    ),
    _admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", columns=_BINDING),
    Kind(
        "apiregistration.k8s.io",
        ("v1",),
        "APIService",
        "apiservices",
        False,
        categories=("api-extensions",),
        subresources=("status",),
        columns=(NAME, Column("Service", _service), Column("Available", _available), AGE),
        name_rule="path",
    ),
)
