"""MutatingWebhookConfiguration and ValidatingWebhookConfiguration: defaults and rules; and client configurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.server.resources.kind import Obj
from muster.server.resources.rules.admission_matching import (
    choice,
    default_rule,
    validate_conditions,
    validate_rule,
    validate_selector,
)
from muster.server.resources.rules.fields import duplicate, invalid, not_supported, required

_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REVIEWS = ("v1", "v1beta1")
_ONE_OF = "must specify one of v1, v1beta1"


def default(obj: Obj, *, mutating: bool) -> None:
    for hook in obj.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        if mutating:
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            default_rule(rule)
        default_client_config(hook.get("clientConfig") or {})


def default_client_config(client_config: Obj) -> None:
    if service := client_config.get("service"):
        service.setdefault("port", 443)


def default_mutating(obj: Obj) -> None:
    default(obj, mutating=True)


def default_validating(obj: Obj) -> None:
    default(obj, mutating=False)


def validate(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for at, hook in enumerate(new.get("webhooks") or ()):
        path, name = f"webhooks[{at}]", hook.get("name", "")
        if name and name in names:
            found.append(duplicate(f"{path}.name", name))
        names.add(name)
        found += _validate_hook(path, name, hook)
    return found


def _validate_hook(path: str, name: str, hook: Obj) -> list[FieldError]:
    found = _validate_name(f"{path}.name", name)
    found += _validate_reviews(f"{path}.admissionReviewVersions", hook.get("admissionReviewVersions") or [])
    for at, rule in enumerate(hook.get("rules") or ()):
        found += validate_rule(f"{path}.rules[{at}]", rule)
    found += choice(f"{path}.failurePolicy", hook.get("failurePolicy"), ("Fail", "Ignore"))
    found += choice(f"{path}.matchPolicy", hook.get("matchPolicy"), ("Equivalent", "Exact"))
    found += choice(f"{path}.reinvocationPolicy", hook.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    side_effects = hook.get("sideEffects")
    if side_effects is None:
        found.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    elif side_effects not in _SIDE_EFFECTS:
        found.append(not_supported(f"{path}.sideEffects", side_effects, _SIDE_EFFECTS))
    seconds = hook.get("timeoutSeconds", 10)
    if not 1 <= seconds <= 30:
        words = "the timeout value must be between 1 and 30 seconds"
        found.append(invalid(f"{path}.timeoutSeconds", seconds, words))
    found += validate_selector(f"{path}.namespaceSelector", hook.get("namespaceSelector"))
    found += validate_selector(f"{path}.objectSelector", hook.get("objectSelector"))
    found += validate_client_config(f"{path}.clientConfig", hook.get("clientConfig") or {})
    return found + validate_conditions(f"{path}.matchConditions", hook.get("matchConditions") or ())


def _validate_name(path: str, name: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    if complaints := formats.dns_subdomain(name):
        return [invalid(path, name, text) for text in complaints]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _validate_reviews(path: str, versions: Sequence[str]) -> list[FieldError]:
    if not versions:
        return [required(path, _ONE_OF)]
    found = [
        invalid(f"{path}[{at}]", each, "duplicate version") for at, each in enumerate(versions) if each in versions[:at]
    ]
    if not any(each in _REVIEWS for each in versions):
        found.append(invalid(path, versions, "must include at least one of v1, v1beta1"))
    return found


def validate_client_config(path: str, client_config: Obj) -> list[FieldError]:
    """Where a webhook is: a URL or a service, and only one of them."""
    url, service = client_config.get("url"), client_config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    return _validate_url(f"{path}.url", url) if url is not None else _validate_service(f"{path}.service", service or {})


def _validate_url(path: str, url: str) -> list[FieldError]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{form}")]
    found: list[FieldError] = []
    if parts.scheme != "https":
        found.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not parts.netloc:
        found.append(invalid(path, parts.netloc, f"host must be specified{form}"))
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        found.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return found


def _validate_service(path: str, service: Obj) -> list[FieldError]:
    found = [required(f"{path}.{name}") for name in ("name", "namespace") if not service.get(name)]
    port: Any = service.get("port", 443)
    if not 1 <= port <= 65535:
        words = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(invalid(f"{path}.port", port, words))
    written: str = service.get("path") or ""
    if not written or written == "/":
        return found
    if not written.startswith("/"):
        found.append(invalid(f"{path}.path", written, "must start with a '/'"))
    steps = written[1:].removesuffix("/").split("/") if written.startswith("/") else ["", *written.split("/")[1:]]
    for at, step in enumerate(steps):
        if not step:
            found.append(invalid(f"{path}.path", written, f"segment[{at}] may not be empty"))
        else:
            found += [
                invalid(f"{path}.path", written, f"segment[{at}]: {text}") for text in formats.dns_subdomain(step)
            ]
    return found
