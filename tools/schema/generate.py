"""Writes src/muster/server/schema/tables.json from Go modules of Kubernetes: api, apimachinery and two more.

Run by a maintainer when the served Kubernetes version changes; needs `go` and the Go module proxy, nothing else:

    python tools/schema/generate.py

The output holds facts only (names, numbers, types, merge rules) and is the same byte for byte on every run.
One field is `[json name, protobuf number, type, presence, extras?]`:

    type      scalar or message; a leading `[` is a list, `{` a map with string keys, `*` a pointer
    presence  0 always written, 1 omitempty, 2 omitzero
    extras    lt list type, lk list map keys, ps patch strategy, mk merge key, df default,
              at whether a map or struct is owned as one value (1) or by member (0), where it is marked,
              gt the Go type of a scalar or map where it has a name of its own, for the words of decoding errors,
              rq whether OpenAPI requires the field, where presence alone does not tell
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gotypes
import protos

API = "k8s.io/api@v0.37.2"
API_136 = "k8s.io/api@v0.36.1"
MACHINERY = "k8s.io/apimachinery@v0.37.2"
EXTENSIONS = "k8s.io/apiextensions-apiserver@v0.37.2"
AGGREGATOR = "k8s.io/kube-aggregator@v0.37.2"
TARGET = Path(__file__).parents[2] / "src/muster/server/schema/tables.json"

SCALARS = {"string", "int32", "int64", "bool", "bytes", "double"}
SPECIAL = {
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "meta.v1.Duration": "duration",
    "meta.v1.FieldsV1": "fields",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intorstring",
    "runtime.RawExtension": "raw",
    "apiextensions.v1.JSON": "raw",
    # One schema, or a list, a boolean, or a list of names in its place.
    "apiextensions.v1.JSONSchemaPropsOrArray": "raw",
    "apiextensions.v1.JSONSchemaPropsOrBool": "raw",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "raw",
}


@dataclass(frozen=True)
class Package:
    """One Go package to read. `group` is None where its messages are parts of others only."""

    short: str
    module: str
    folder: str
    group: str | None
    kinds: tuple[str, ...] = ()  # roots; empty means every message that has apiVersion and kind

    @property
    def version(self) -> str:
        return self.short.partition(".")[2]

    @property
    def proto(self) -> str:
        return self._path.replace("-", "_")

    @property
    def openapi(self) -> str:
        return "io." + self._path.removeprefix("k8s.io.").join(("k8s.", ""))

    @property
    def _path(self) -> str:
        return f"{self.module.partition('@')[0]}/{self.folder}".replace("/", ".")


def _api(folder: str, group: str, module: str = API, kinds: tuple[str, ...] = ()) -> Package:
    return Package(folder.replace("/", "."), module, folder, group, kinds)


PACKAGES = (
    _api("core/v1", ""),
    _api("apps/v1", "apps"),
    _api("batch/v1", "batch"),
    _api("policy/v1", "policy"),
    _api("scheduling/v1", "scheduling.k8s.io"),
    _api("scheduling/v1alpha2", "scheduling.k8s.io", API_136),
    _api("scheduling/v1alpha3", "scheduling.k8s.io"),
    _api("scheduling/v1beta1", "scheduling.k8s.io"),
    _api("coordination/v1", "coordination.k8s.io"),
    _api("events/v1", "events.k8s.io"),
    _api("discovery/v1", "discovery.k8s.io"),
    _api("storage/v1", "storage.k8s.io"),
    _api("resource/v1", "resource.k8s.io"),
    _api("rbac/v1", "rbac.authorization.k8s.io"),
    _api("authentication/v1", "authentication.k8s.io"),
    _api("authorization/v1", "authorization.k8s.io"),
    _api("autoscaling/v1", "autoscaling"),
    _api("autoscaling/v2", "autoscaling"),
    _api("certificates/v1", "certificates.k8s.io"),
    _api("networking/v1", "networking.k8s.io"),
    _api("node/v1", "node.k8s.io"),
    _api("flowcontrol/v1", "flowcontrol.apiserver.k8s.io"),
    _api("admissionregistration/v1", "admissionregistration.k8s.io"),
    Package(
        "meta.v1",
        MACHINERY,
        "pkg/apis/meta/v1",
        "meta.k8s.io",
        ("Status", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "PartialObjectMetadata"),
    ),
    Package(
        "apiextensions.v1",
        EXTENSIONS,
        "pkg/apis/apiextensions/v1",
        "apiextensions.k8s.io",
        ("CustomResourceDefinition", "CustomResourceDefinitionList"),
    ),
    Package(
        "apiregistration.v1",
        AGGREGATOR,
        "pkg/apis/apiregistration/v1",
        "apiregistration.k8s.io",
        ("APIService", "APIServiceList"),
    ),
    Package("resource", MACHINERY, "pkg/api/resource", None),
    Package("intstr", MACHINERY, "pkg/util/intstr", None),
    Package("runtime", MACHINERY, "pkg/runtime", None),
)


class Tables:
    """Every message of every package, and from it the part that the roots reach."""

    def __init__(self, roots: dict[str, Path]) -> None:
        self.short_of = {package.proto: package.short for package in PACKAGES}
        self.go: dict[str, gotypes.GoPackage] = {}
        self.proto: dict[str, dict[str, dict[int, protos.ProtoField]]] = {}
        for package in PACKAGES:
            folder = roots[package.module] / package.folder
            sources = [path for path in folder.glob("*.go") if not path.name.endswith("_test.go")]
            self.go[package.short] = gotypes.read(path for path in sources if "generated" not in path.name)
            self.proto[package.short] = protos.read(folder / "generated.proto")

    def reachable(self) -> dict[str, dict[str, Any]]:
        done: dict[str, dict[str, Any]] = {}
        pending = [f"{package.short}.{kind}" for package in PACKAGES for kind in self.roots(package)]
        while pending:
            name = pending.pop()
            if name not in done:
                done[name], refs = self.message(name)
                pending += refs
        return dict(sorted(done.items()))

    def roots(self, package: Package) -> list[str]:
        if package.group is None:
            return []
        structs = self.go[package.short].structs
        return list(package.kinds) or [name for name in structs if self.is_kind(package.short, name)]

    def is_kind(self, short: str, name: str) -> bool:
        struct = self.go[short].structs.get(name)
        return struct is not None and any(
            field.name == "TypeMeta" and "inline" in field.options for field in struct.fields
        )

    def message(self, name: str) -> tuple[dict[str, Any], list[str]]:
        short, _, local = name.rpartition(".")
        struct = self.go[short].structs[local]
        numbers = self.proto[short].get(local, {})
        fields: list[list[Any]] = []
        inline: list[list[Any]] = []
        refs: list[str] = []
        for go in struct.fields:
            if go.name == "TypeMeta" and "inline" in go.options:
                continue
            if go.json_name == "-" or go.number not in numbers:
                continue
            code = self.code(short, go, numbers[go.number])
            target = code.lstrip("*[{")
            if target[0].isupper() or "." in target:
                refs.append(target if "." in target else f"{short}.{target}")
            if "inline" in go.options:
                inline.append([go.number, code])
            else:
                fields.append(self.row(short, go, code))
        entry: dict[str, Any] = {"f": fields}
        if inline:
            entry["in"] = inline
        if self.is_kind(short, local):
            entry["k"] = 1
        if "atomic" in struct.markers.get("structType", []):
            entry["at"] = 1
        return entry, refs

    def code(self, short: str, go: gotypes.GoField, proto: protos.ProtoField) -> str:
        pointer = "*" if go.pointer else ""
        if proto.type in SCALARS:
            return pointer + proto.shape + proto.type
        package, _, local = proto.type.rpartition(".")
        owner = self.short_of[package]
        name = f"{owner}.{local}"
        if name in SPECIAL:
            return pointer + proto.shape + SPECIAL[name]
        if local in self.go[owner].string_slices:
            return pointer + proto.shape + "strings"
        return pointer + proto.shape + (local if owner == short else name)

    def row(self, short: str, go: gotypes.GoField, code: str) -> list[Any]:
        extras: dict[str, Any] = {}
        if kind := go.markers.get("listType"):
            extras["lt"] = kind[-1]
            if keys := go.markers.get("listMapKey"):
                extras["lk"] = keys
        marked = go.markers.get("mapType", []) + go.markers.get("structType", [])
        if marked:
            extras["at"] = int("atomic" in marked)
        if strategy := go.tags.get("patchStrategy"):
            extras["ps"] = strategy
        if key := go.tags.get("patchMergeKey"):
            extras["mk"] = key
        if (default := gotypes.literal_default(go.markers)) is not None:
            extras["df"] = default
        if name := self.go_name(short, go, code):
            extras["gt"] = name
        presence = 2 if "omitzero" in go.options else 1 if "omitempty" in go.options else 0
        required = "required" in go.markers or ("optional" not in go.markers and not presence)
        if required != (presence == 0):
            extras["rq"] = int(required)
        row = [go.json_name, go.number, code, presence]
        return [*row, extras] if extras else row

    def go_name(self, short: str, go: gotypes.GoField, code: str) -> str:
        """The type as Go's decoder prints it, where that is a named scalar or a named map; empty otherwise."""
        named_map = "{" in code and "map[" not in go.type
        if code.lstrip("*[{") not in SCALARS and not named_map:
            return ""
        package, _, local = re.split(r"[\]*]", go.type)[-1].rpartition(".")
        if not local[:1].isupper():
            return ""
        return f"{package.removeprefix('meta') or short.rpartition('.')[2]}.{local}"


def module_roots() -> dict[str, Path]:
    """Where the Go tool has unpacked each module; downloads what is missing."""
    modules = sorted({package.module for package in PACKAGES})
    answer = subprocess.run(["go", "mod", "download", "-json", *modules], capture_output=True, text=True, check=True)
    decoder, text, roots = json.JSONDecoder(), answer.stdout.strip(), {}
    while text:
        found, end = decoder.raw_decode(text)
        roots[f"{found['Path']}@{found['Version']}"] = Path(found["Dir"])
        text = text[end:].strip()
    return roots


def tables() -> str:
    """The text of the table file."""
    document = {
        "sources": sorted({package.module for package in PACKAGES}),
        "packages": {
            package.short: [package.openapi, package.group, package.version]
            for package in PACKAGES
            if package.group is not None
        },
        "messages": Tables(module_roots()).reachable(),
    }
    return json.dumps(document, separators=(",", ":"), sort_keys=True) + "\n"


def main() -> None:
    TARGET.write_text(tables())
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
