"""The files under deploy/ are what the code makes; they are never edited by hand."""

from pathlib import Path

import pytest
import yaml

from muster.api.crds import LONGEST_POD_GROUP_NAME, crds
from muster.api.dashboard_installation import dashboard_installation
from muster.api.groups import MAX_DEPTH
from muster.api.installation import USER, installation
from muster.cli.install import IMAGE
from muster.cli.yaml_text import to_documents, to_yaml
from muster.engine import api_discovery

ROOT = Path(__file__).parents[2]
MADE = {definition["spec"]["names"]["plural"]: definition for definition in crds()}


@pytest.mark.parametrize("plural", sorted(MADE))
def test_a_definition_file_is_what_the_code_makes(plural):
    text = (ROOT / "deploy" / "crds" / f"{plural}.yaml").read_text()
    assert text == to_yaml(MADE[plural]), "write it anew: python -m deploy"


def test_there_are_no_other_definition_files():
    assert {path.stem for path in (ROOT / "deploy" / "crds").glob("*.yaml")} == {*MADE, "kustomization"}


def test_the_installation_file_is_what_the_code_makes():
    assert (ROOT / "deploy" / "muster.yaml").read_text() == to_documents(installation(IMAGE)), "python -m deploy"


def test_the_image_runs_as_the_user_that_the_manifest_asks_for():
    assert f"USER {USER}:{USER}" in (ROOT / "Dockerfile").read_text()


# --- definitions ------------------------------------------------------------------------------------


def schema(plural, *path):
    found = MADE[plural]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for step in path:
        found = found["items"] if step == "[]" else found["properties"][step]
    return found


def every_schema(found):
    yield found
    for inner in found.get("properties", {}).values():
        yield from every_schema(inner)
    if "items" in found:
        yield from every_schema(found["items"])


@pytest.mark.parametrize("plural", sorted(MADE))
def test_a_schema_is_structural(plural):
    for each in every_schema(schema(plural)):
        assert each.get("type"), each
        assert not {"$ref", "allOf", "anyOf", "oneOf"} & set(each)


@pytest.mark.parametrize("plural", sorted(MADE))
def test_a_definition_has_columns_and_a_short_name(plural):
    version = MADE[plural]["spec"]["versions"][0]
    assert version["additionalPrinterColumns"][-1]["name"] == "Age"
    assert MADE[plural]["spec"]["names"]["shortNames"]
    assert ("subresources" in version) == (plural != "workloads")


def test_a_pod_group_has_a_name_that_fits_into_a_label():
    assert schema("podgroups", "metadata", "name")["maxLength"] == LONGEST_POD_GROUP_NAME == 63


def test_templates_end_at_the_allowed_depth():
    here, depth = schema("workloads", "spec"), 0
    while "properties" in here:
        here, depth = here["properties"]["compositePodGroupTemplates"]["items"], depth + 1
    assert depth == MAX_DEPTH  # what is deeper is kept for the rule that refuses it


def test_the_files_are_plain_yaml():
    for path in [*(ROOT / "deploy").glob("*.yaml"), *(ROOT / "deploy" / "crds").glob("*.yaml")]:
        assert all(document["kind"] for document in yaml.safe_load_all(path.read_text()))


def test_the_dashboard_may_read_everything_that_it_watches():
    rules = next(each["rules"] for each in dashboard_installation("muster") if each["kind"] == "ClusterRole")
    granted = {(group, kind) for rule in rules for group in rule["apiGroups"] for kind in rule["resources"]}
    watched = {(each.group, each.plural) for each in (*api_discovery._NEEDED, *api_discovery._USEFUL)}
    assert watched - granted == set()
