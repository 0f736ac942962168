"""The schemas are complete, self-consistent, and say what each field means."""

from collections.abc import Iterator
from typing import Any

import pytest

from muster.api import openapi, versions

PREFIX = "io.k8s.api.scheduling"


def inside(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from inside(part)
    elif isinstance(value, list):
        for part in value:
            yield from inside(part)


@pytest.mark.parametrize("version", versions.VERSIONS)
def test_every_reference_leads_somewhere(version: str):
    schemas = openapi.schemas(version)
    known = set(schemas) | set(openapi.META_SCHEMAS)
    used = {part["$ref"].removeprefix("#/components/schemas/") for part in inside(schemas) if "$ref" in part}
    assert used <= known


@pytest.mark.parametrize("version", versions.VERSIONS)
def test_every_type_and_field_is_described(version: str):
    for name, schema in {**openapi.schemas(version), **openapi.META_SCHEMAS}.items():
        assert schema["description"], name
        for field, body in schema.get("properties", {}).items():
            assert body["description"], f"{name}.{field}"
        assert set(schema.get("required", ())) <= set(schema.get("properties", {}))


@pytest.mark.parametrize("version", versions.VERSIONS)
def test_the_kinds_of_a_version_carry_their_names(version: str):
    schemas = openapi.schemas(version)
    for kind, served in versions.SERVED.items():
        name = f"{PREFIX}.{version}.{kind}"
        assert (name in schemas) is (version in served)
        if version in served:
            gvk = [{"group": "scheduling.k8s.io", "kind": kind, "version": version}]
            assert schemas[name]["x-kubernetes-group-version-kind"] == gvk
            assert f"{name}List" in schemas


def test_lists_say_how_they_merge():
    schemas = openapi.schemas("v1beta1")
    templates = schemas[f"{PREFIX}.v1beta1.WorkloadSpec"]["properties"]["podGroupTemplates"]
    assert templates["x-kubernetes-list-type"] == "map"
    assert templates["x-kubernetes-list-map-keys"] == ["name"]
    assert templates["maxItems"] == 8
    topology = schemas[f"{PREFIX}.v1beta1.PodGroupSchedulingConstraints"]["properties"]["topology"]
    assert topology["x-kubernetes-list-type"] == "atomic"
    conditions = schemas[f"{PREFIX}.v1beta1.PodGroupStatus"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["x-kubernetes-patch-merge-key"] == "type"


def test_numbers_have_their_size():
    gang = openapi.schemas("v1alpha3")[f"{PREFIX}.v1alpha3.GangSchedulingPolicy"]
    minimum = gang["properties"]["minCount"]
    assert (minimum["type"], minimum["format"], minimum["minimum"]) == ("integer", "int32", 1)
    assert gang["required"] == ["minCount"]


def test_v1alpha2_has_the_fields_of_its_time():
    schemas = openapi.schemas("v1alpha2")
    spec = schemas[f"{PREFIX}.v1alpha2.PodGroupSpec"]["properties"]
    assert spec["disruptionMode"]["enum"] == ["Pod", "PodGroup"]
    assert "podGroupTemplateRef" in spec
    assert not {"workloadRef", "parentCompositePodGroupName", "preemptionPolicy"} & set(spec)
    reference = schemas[f"{PREFIX}.v1alpha2.WorkloadPodGroupTemplateReference"]
    assert set(reference["properties"]) == {"workloadName", "podGroupTemplateName"}
    assert not any("Composite" in name for name in schemas)
