"""CertificateSigningRequests and ClusterTrustBundles: what may be written where, and rules.

A request is never changed. `/approval` writes the conditions Approved and Denied, `/status` everything else of the
status. Who asked is set by admission.
"""

from __future__ import annotations

import base64
import binascii
import re

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import duplicate, forbidden, invalid, not_supported, required

_USAGES = frozenset(
    (
        "any",
        "cert sign",
        "client auth",
        "code signing",
        "content commitment",
        "crl sign",
        "data encipherment",
        "decipher only",
        "digital signature",
        "email protection",
        "encipher only",
        "ipsec end system",
        "ipsec tunnel",
        "ipsec user",
        "key agreement",
        "key encipherment",
        "microsoft sgc",
        "netscape sgc",
        "ocsp signing",
        "s/mime",
        "server auth",
        "signing",
        "timestamping",
    )
)
_DECISIONS = ("Approved", "Denied")
_FINAL = (*_DECISIONS, "Failed")
_PATH = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LEAST_SECONDS = 600


def prepare_request(new: Obj, old: Obj | None, subresource: str) -> None:
    if old is None:
        new["status"] = {}
        return
    new["spec"] = old.get("spec") or {}
    before: Obj = old.get("status") or {}
    if subresource == "approval":
        status: Obj = {**before, "conditions": (new.get("status") or {}).get("conditions") or []}
        new["status"] = {key: value for key, value in status.items() if value}
    elif subresource != "status":
        new["status"] = before


def validate_request(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    found: list[FieldError] = []
    if old is None:
        found += _request(spec)
    found += _conditions((new.get("status") or {}).get("conditions") or [])
    if old is not None:
        found += _changes(new.get("status") or {}, old.get("status") or {}, subresource)
    return found


def _request(spec: Obj) -> list[FieldError]:
    found: list[FieldError] = []
    if complaint := _malformed(spec.get("request") or ""):
        found.append(invalid("spec.request", spec.get("request"), complaint))
    usages: list[str] = spec.get("usages") or []
    if not usages:
        found.append(required("spec.usages"))
    for position, usage in enumerate(usages):
        path = f"spec.usages[{position}]"
        if usage not in _USAGES:
            found.append(not_supported(path, usage, _USAGES))
        elif usage in usages[:position]:
            found.append(duplicate(path, usage))
    found += _signer(spec.get("signerName") or "")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _LEAST_SECONDS:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        found.append(invalid("spec.expirationSeconds", seconds, text))
    return found


def _malformed(encoded: str) -> str:
    """Why the bytes are no certificate request that is signed by its own key."""
    from cryptography import x509

    try:
        request = x509.load_pem_x509_csr(base64.b64decode(encoded))
    except (ValueError, binascii.Error):
        return "PEM block type must be CERTIFICATE REQUEST"
    return "" if request.is_signature_valid else "x509: signature of the request is not valid"


def _signer(name: str) -> list[FieldError]:
    path = "spec.signerName"
    if not name:
        return [required(path)]
    if name == "kubernetes.io/legacy-unknown":
        return [invalid(path, name, "the legacy signerName is not allowed via this API version")]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        return [invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")]
    found = [invalid(path, name, text) for text in formats.dns_subdomain(domain)]
    if "." not in domain:
        found.append(invalid(path, name, "should be a domain with at least two segments separated by dots"))
    if not _PATH.fullmatch(rest):
        found.append(invalid(path, name, "must be a valid path segment after the domain"))
    return found


def _conditions(conditions: list[Obj]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, each in enumerate(conditions):
        path = f"status.conditions[{position}]"
        kind, status = each.get("type") or "", each.get("status") or ""
        if not kind:
            found.append(required(f"{path}.type"))
        allowed = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        if not status:
            found.append(required(f"{path}.status"))
        elif status not in allowed:
            found.append(not_supported(f"{path}.status", status, allowed))
        if kind in seen:
            found.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
    if seen.issuperset(_DECISIONS):
        text = "Approved and Denied conditions are mutually exclusive"
        found.append(invalid("status.conditions", conditions[-1].get("type"), text))
    return found


def _changes(new: Obj, old: Obj, subresource: str) -> list[FieldError]:
    after = {each.get("type"): each for each in new.get("conditions") or ()}
    before = {each.get("type"): each for each in old.get("conditions") or ()}
    path = "status.conditions"
    found = [
        forbidden(path, f'updates may not remove a condition of type "{kind}"')
        for kind in _FINAL
        if kind in before and kind not in after
    ]
    for kind in _DECISIONS if subresource != "approval" else ():
        if kind in after and kind not in before:
            found.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
        elif kind in after and after[kind] != before[kind]:
            found.append(forbidden(path, f'updates may not modify a condition of type "{kind}"'))
    if new.get("certificate") != old.get("certificate"):
        if subresource != "status":
            found.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif old.get("certificate"):
            found.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
        elif complaint := _bad_certificates(base64.b64decode(new.get("certificate") or "")):
            found.append(invalid("status.certificate", "<certificate data>", complaint))
    return found


def _bad_certificates(pem: bytes) -> str:
    from cryptography import x509

    try:
        x509.load_pem_x509_certificates(pem)
    except ValueError:
        return "must contain at least one CERTIFICATE PEM block"
    return ""


def validate_trust_bundle(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    name, signer = (new.get("metadata") or {}).get("name") or "", spec.get("signerName") or ""
    found: list[FieldError] = []
    prefix = signer.replace("/", ":") + ":"
    if signer and not name.startswith(prefix):
        text = f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        found.append(invalid("metadata.name", name, text))
    elif not signer and ":" in name:
        text = 'ClusterTrustBundle without signer name must not have ":" in its name'
        found.append(invalid("metadata.name", name, text))
    if complaint := _bad_certificates((spec.get("trustBundle") or "").encode()):
        found.append(invalid("spec.trustBundle", "<value omitted>", complaint))
    if old is not None and signer != ((old.get("spec") or {}).get("signerName") or ""):
        found.append(invalid("spec.signerName", signer, "field is immutable"))
    return found
