"""The rules of CustomResourceDefinition objects: what is filled in, what clients may write, what is refused.

Errors name fields as Kubernetes does: what all versions have alike is found at the top of the spec, in
`spec.validation`, `spec.subresources` and so on, as in the older form of the kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muster.api.errors import FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED, TOO_MANY, FieldError, bad_request
from muster.api.validation import formats
from muster.server import fields
from muster.server.custom_resources import cel_rules, default_rules, structural_rules
from muster.server.custom_resources.structural import Schema, Structural
from muster.server.resources.kind import Obj
from muster.server.resources.rules.status import keep_status
from muster.server.schema import message

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
APPROVED = "api-approved.kubernetes.io"
MOST_SELECTABLE = 8

_ALLOWED_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern"
    " MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields"
    " XValidations"
)
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_NESTED = ("allOf", "anyOf", "oneOf")

Errors = Iterator[FieldError]


# Defaults


def default(definition: Obj) -> None:
    """Fill in what was left out of a definition, in place."""
    spec = definition["spec"]
    names: Obj = spec.setdefault("names", {})
    if names.get("kind"):
        names["singular"] = names.get("singular") or names["kind"].lower()
        names["listKind"] = names.get("listKind") or f"{names['kind']}List"
    conversion: Obj = spec.get("conversion") or {}
    conversion["strategy"] = conversion.get("strategy") or "None"
    spec["conversion"] = conversion
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)
    for version in spec.get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            _read(schema)


def _read(schema: Schema) -> None:
    """Read the schemas that stand where something else may stand too (`items`, `additionalProperties`), in place."""
    for name, other in (("items", list), ("additionalProperties", bool)):
        value: Any = schema.get(name)
        if type(value) is dict:
            schema[name] = fields.canonicalise(value, message("apiextensions.v1.JSONSchemaProps"))
            _read(schema[name])
        elif value is not None and type(value) is not other:
            raise bad_request(f"{name} of a schema must be a schema or a {other.__name__}")
    for each in (schema.get("properties") or {}).values():
        _read(each)
    for junctor in _NESTED:
        for each in schema.get(junctor) or ():
            _read(each)
    if schema.get("not") is not None:
        _read(schema["not"])


# What clients may write


def prepare(new: Obj, old: Obj | None, subresource: str) -> None:
    """The status is the server's; versions that were stored once stay known until somebody takes them off there."""
    keep_status(new, old, subresource)
    if subresource:
        return
    status: Obj = new.setdefault("status", {})
    stored: list[str] = status.setdefault("storedVersions", [])
    for version in new["spec"].get("versions") or ():
        if version.get("storage") and version["name"] not in stored:
            status["storedVersions"] = [*stored, version["name"]]
            break


# Validation


def validate(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    """The field errors of a definition."""
    if subresource == "status":
        return list(_names((new.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames"))
    errors: list[FieldError] = []
    spec: Obj = new["spec"]
    if old is None:
        wanted = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"
        if new["metadata"].get("name") != wanted:
            why = 'must be spec.names.plural+"."+spec.group'
            errors.append(FieldError(INVALID, "metadata.name", new["metadata"].get("name", ""), why))
    errors += _spec(spec)
    if old is not None:
        errors += _unchanged(new, old)
    errors += _stored_versions(new)
    errors += _approval(new, old)
    if spec.get("preserveUnknownFields") and not (old or {}).get("spec", {}).get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(FieldError(INVALID, "spec.preserveUnknownFields", True, why))
    return errors


def _spec(spec: Obj) -> Errors:
    group: str = spec.get("group") or ""
    if not group:
        yield FieldError(REQUIRED, "spec.group")
    elif wrong := formats.dns_subdomain(group):
        yield FieldError(INVALID, "spec.group", group, ",".join(wrong))
    elif "." not in group:
        yield FieldError(INVALID, "spec.group", group, "should be a domain with at least one dot")
    yield from _one_of("spec.scope", spec.get("scope"), ("Cluster", "Namespaced"))
    yield from _versions(spec)
    for name in ("plural", "singular", "kind", "listKind"):
        if not spec["names"].get(name):
            yield FieldError(REQUIRED, f"spec.names.{name}")
    yield from _names(spec["names"], "spec.names")
    yield from _conversion(spec["conversion"])


def _one_of(path: str, value: str | None, known: tuple[str, ...]) -> Errors:
    if not value:
        yield FieldError(REQUIRED, path)
    elif value not in known:
        listed = ", ".join(f'"{each}"' for each in known)
        yield FieldError(NOT_SUPPORTED, path, value, f"supported values: {listed}")


def _names(names: Obj, path: str) -> Errors:
    for name in ("plural", "singular"):
        if names.get(name) and (wrong := formats.rfc_1035_label(names[name])):
            yield FieldError(INVALID, f"{path}.{name}", names[name], ",".join(wrong))
    for name in ("kind", "listKind"):
        if names.get(name) and (wrong := formats.rfc_1035_label(names[name].lower())):
            why = "may have mixed case, but should otherwise match: " + ",".join(wrong)
            yield FieldError(INVALID, f"{path}.{name}", names[name], why)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield FieldError(INVALID, f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    for name in ("shortNames", "categories"):
        for index, each in enumerate(names.get(name) or ()):
            if wrong := formats.rfc_1035_label(each):
                yield FieldError(INVALID, f"{path}.{name}[{index}]", each, ",".join(wrong))


def _versions(spec: Obj) -> Errors:
    versions: list[Obj] = spec.get("versions") or []
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield FieldError(REQUIRED, f"{path}.schema.openAPIV3Schema")
        if wrong := formats.rfc_1035_label(version["name"]):
            yield FieldError(INVALID, f"{path}.name", version["name"], ",".join(wrong))
        yield from _deprecation(version, path)
    if versions and (wrong := formats.rfc_1035_label(versions[0]["name"])):
        yield FieldError(INVALID, "spec.version", versions[0]["name"], ",".join(wrong))
    for field, top, check in (
        ("schema", "validation", _schema),
        ("subresources", "subresources", _subresources),
        ("additionalPrinterColumns", "additionalPrinterColumns", _columns),
        ("selectableFields", "selectableFields", _selectable),
    ):
        yield from _each_version(versions, field, top, check)
    names = [version["name"] for version in versions]
    if len(set(names)) != len(names):
        yield FieldError(INVALID, "spec.versions", versions, "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        why = "must have exactly one version marked as storage version"
        yield FieldError(INVALID, "spec.versions", versions, why)


def _each_version(versions: list[Obj], field: str, top: str, check: Any) -> Errors:
    """What versions have alike is checked once, at the top."""
    first = versions[0].get(field) if versions else None
    if first is not None and all(version.get(field) == first for version in versions):
        yield from check(versions[0], f"spec.{top}")
        return
    for index, version in enumerate(versions):
        yield from check(version, f"spec.versions[{index}].{field}")


def _deprecation(version: Obj, path: str) -> Errors:
    warning: str | None = version.get("deprecationWarning")
    if warning is None:
        return
    where = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield FieldError(INVALID, where, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > 256:
        yield FieldError(INVALID, where, warning, "must be <= 256 characters long")
    if not warning:
        yield FieldError(INVALID, where, warning, "must not be an empty string")
    for index, letter in enumerate(warning):
        if not letter.isprintable():
            why = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
            yield FieldError(INVALID, where, warning, why)
            break


def _schema(version: Obj, path: str) -> Errors:
    schema: Schema | None = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        return
    where = f"{path}.openAPIV3Schema"
    if "status" in (version.get("subresources") or {}):
        yield from _root_with_status(schema, where)
    if schema.get("nullable"):
        yield FieldError(FORBIDDEN, f"{where}.nullable", detail="nullable cannot be true at the root")
    errors = structural_rules.validate_schema(schema, where)
    yield from errors
    if not errors:
        errors = list(default_rules.validate_defaults(schema, where))
        yield from errors
    if not errors:
        yield from cel_rules.validate_rules(Structural(schema), where)


def _root_with_status(schema: Schema, path: str) -> Errors:
    if schema.get("type") and schema["type"] != "object":
        why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield FieldError(INVALID, f"{path}.type", schema["type"], why)
    allowed = _ALLOWED_AT_ROOT.split()
    for name in schema:
        plain = "".join(part[:1].upper() + part[1:] for part in name.replace("x-kubernetes", "x").split("-"))
        if plain not in allowed:
            listed = " ".join(allowed)
            why = f"only [{listed}] fields are allowed at the root of the schema if the status subresource is enabled"
            yield FieldError(INVALID, path, schema, why)
            return


def _subresources(version: Obj, path: str) -> Errors:
    scale: Obj | None = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for name, roots in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        where, value = f"{path}.scale.{name}", scale.get(name)
        if not value:
            if name != "labelSelectorPath":
                yield FieldError(REQUIRED, where)
        elif not value.startswith("."):
            yield FieldError(INVALID, where, value, "must be a simple json path starting with .")
        elif not value.startswith(roots):
            root = roots[0].rstrip(".") if len(roots) == 1 else "either .spec or .status"
            yield FieldError(INVALID, where, value, f"should be a json path under {root}")


def _columns(version: Obj, path: str) -> Errors:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        where = f"{path}[{index}]"
        kinds = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column.get("name"):
            yield FieldError(REQUIRED, f"{where}.name")
        if not column.get("type"):
            yield FieldError(REQUIRED, f"{where}.type", detail=kinds)
        elif column["type"] not in _COLUMN_TYPES:
            yield FieldError(INVALID, f"{where}.type", column["type"], kinds)
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            why = f"must be one of {','.join(_COLUMN_FORMATS)}"
            yield FieldError(INVALID, f"{where}.format", column["format"], why)
        if not column.get("jsonPath"):
            yield FieldError(REQUIRED, f"{where}.JSONPath")
        elif not column["jsonPath"].startswith("."):
            why = "must be a simple json path starting with ."
            yield FieldError(INVALID, f"{where}.JSONPath", column["jsonPath"], why)


def _selectable(version: Obj, path: str) -> Errors:
    given: list[Obj] = version.get("selectableFields") or []
    seen: set[str] = set()
    schema: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    for index, each in enumerate(given):
        where, field = f"{path}[{index}].jsonPath", each.get("jsonPath") or ""
        if not field:
            yield FieldError(REQUIRED, where)
            continue
        found = _property(schema, field)
        if found is None:
            yield FieldError(INVALID, where, field, "is an invalid path: does not refer to a valid field")
            continue
        if field.startswith(".metadata"):
            yield FieldError(INVALID, where, field, "must not point to fields in metadata")
        if found.get("type") not in ("string", "boolean", "integer"):
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats"
                " are allowed."
            )
            yield FieldError(INVALID, where, field, why)
        if field in seen:
            yield FieldError("FieldValueDuplicate", where, field)
        seen.add(field)
    if len(seen) > MOST_SELECTABLE:
        yield FieldError(TOO_MANY, path, len(seen), f"must have at most {MOST_SELECTABLE} items")


def _property(schema: Schema, path: str) -> Schema | None:
    """The schema of a field named by a path of plain names."""
    names = path.split(".")
    if names[0] or len(names) < 2:
        return None
    found: Any = schema
    for name in names[1:]:
        found = (found.get("properties") or {}).get(name)
        if not isinstance(found, dict):
            return None
    return found


def _conversion(conversion: Obj) -> Errors:
    yield from _one_of("spec.conversion.strategy", conversion.get("strategy"), ("None", "Webhook"))
    webhook: Obj | None = conversion.get("webhook")
    if conversion.get("strategy") != "Webhook":
        if webhook is not None and webhook.get("clientConfig") is not None:
            why = "should not be set when strategy is not set to Webhook"
            yield FieldError(FORBIDDEN, "spec.conversion.webhookClientConfig", detail=why)
        return
    client: Obj | None = (webhook or {}).get("clientConfig")
    where = "spec.conversion.webhookClientConfig"
    if client is None:
        yield FieldError(REQUIRED, where, detail="required when strategy is set to Webhook")
    elif (client.get("url") is None) == (client.get("service") is None):
        yield FieldError(REQUIRED, where, detail="exactly one of url or service is required")
    elif client.get("url") is not None and not client["url"].startswith("https://"):
        why = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        yield FieldError(INVALID, f"{where}.url", client["url"].partition(":")[0], why)
    yield from _review_versions((webhook or {}).get("conversionReviewVersions") or [])


def _review_versions(versions: list[str]) -> Errors:
    where = "spec.conversion.conversionReviewVersions"
    if not versions:
        yield FieldError(REQUIRED, where)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield FieldError(INVALID, f"{where}[{index}]", version, "duplicate version")
            continue
        for wrong in formats.rfc_1035_label(version):
            yield FieldError(INVALID, f"{where}[{index}]", version, wrong)
    if not {"v1", "v1beta1"} & set(versions):
        yield FieldError(INVALID, where, versions, "must include at least one of v1, v1beta1")


def _unchanged(new: Obj, old: Obj) -> Errors:
    spec, before = new["spec"], old["spec"]
    fixed = [("group", spec.get("group"), before.get("group"))]
    if is_true(old, "Established"):
        fixed.append(("scope", spec.get("scope"), before.get("scope")))
        fixed.append(("names.kind", spec["names"].get("kind"), before["names"].get("kind")))
    fixed.append(("names.plural", spec["names"].get("plural"), before["names"].get("plural")))
    for name, value, stored in fixed:
        if value != stored:
            yield FieldError(INVALID, f"spec.{name}", value, "field is immutable")


def _stored_versions(definition: Obj) -> Errors:
    path = "status.storedVersions"
    stored: list[str] = (definition.get("status") or {}).get("storedVersions") or []
    if not stored:
        yield FieldError(INVALID, path, stored, "must have at least one stored version")
        return
    versions: list[Obj] = definition["spec"].get("versions") or []
    names = {version["name"] for version in versions}
    for version in versions:
        if version.get("storage") and version["name"] not in stored:
            yield FieldError(INVALID, path, stored, f"must have the storage version {version['name']}")
    for index, name in enumerate(stored):
        if name not in names:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions"
                f" until a storage migration ensures no data remains persisted in {name} and removes {name} from"
                " status.storedVersions"
            )
            yield FieldError(INVALID, f"{path}[{index}]", name, why)


def is_protected(group: str) -> bool:
    """Whether a group belongs to Kubernetes itself, whose APIs are approved by its reviewers."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def _approval(new: Obj, old: Obj | None) -> Errors:
    if not is_protected(new["spec"].get("group") or ""):
        return
    approved = (new["metadata"].get("annotations") or {}).get(APPROVED, "")
    if old is not None and (old["metadata"].get("annotations") or {}).get(APPROVED, "") == approved:
        return
    where = f"metadata.annotations[{APPROVED}]"
    if not approved:
        why = (
            f'protected groups must have approval annotation "{APPROVED}", see'
            " https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield FieldError(REQUIRED, where, detail=why)
    elif not approved.startswith(("https://", "http://", "unapproved")):
        why = (
            f'protected groups must have approval annotation "{APPROVED}" with either a URL or a reason starting with'
            ' "unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
        )
        yield FieldError(INVALID, where, approved, why)


def is_true(definition: Obj, condition: str) -> bool:
    found: list[Obj] = (definition.get("status") or {}).get("conditions") or []
    return any(each.get("type") == condition and each.get("status") == "True" for each in found)
