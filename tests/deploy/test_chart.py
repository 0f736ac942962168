"""The Helm chart: made from the objects that `muster install` applies, and the same for the defaults."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.chart import templates

from muster import __version__
from muster.api.crds import crds
from muster.api.dashboard_installation import dashboard_installation
from muster.api.installation import installation
from muster.api.membership_policy import membership_policies
from muster.api.workload_installation import workload_installation
from muster.cli.install import IMAGE

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "muster"
INSTANCE = "app.kubernetes.io/instance"

Obj = dict[str, Any]
Rendering = Callable[..., list[Obj]]


@pytest.mark.parametrize("path", sorted(templates()))
def test_a_generated_file_is_what_the_code_makes(path: str) -> None:
    assert (CHART / path).read_text() == templates()[path], "write it anew: python -m deploy"


def test_every_value_is_in_the_schema_and_has_a_default() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(schema: Obj, values: Obj, path: str) -> None:
        known = schema.get("properties")
        if known is None or not values:
            return
        assert set(values) == set(known) - {"global"}, path
        for name, value in values.items():
            if isinstance(value, dict):
                compare(known[name], value, f"{path}.{name}")

    compare(schema, {**values, "resources": {}, "dashboard": values["dashboard"]}, "")
    assert schema["additionalProperties"] is False


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


# What helm makes of it


@pytest.fixture
def rendered(helm: Path, tmp_path: Path) -> Rendering:
    """What a release called muster would apply, with these values."""

    def render(values: Obj | None = None) -> list[Obj]:
        given = tmp_path / "values.yaml"
        given.write_text(json.dumps(values or {}))
        command = [helm, "template", "muster", CHART, "--namespace", "muster-system", "--values", given]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [obj for obj in yaml.safe_load_all(done.stdout) if obj]

    return render


def by_name(objects: list[Obj]) -> dict[tuple[str, str, str], Obj]:
    return {(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects}


def without_instance(value: Any) -> Any:
    """An object without what tells releases apart, and with lists of words in one order."""
    if isinstance(value, dict):
        kept = {key: without_instance(each) for key, each in value.items() if key != INSTANCE}
        for name in ("args", "values"):
            if isinstance(kept.get(name), list):
                kept[name] = sorted(each for each in kept[name] if each != "--v=0")
        return kept
    return [without_instance(each) for each in value] if isinstance(value, list) else value


def comparable(objects: list[Obj]) -> dict[tuple[str, str, str], Obj]:
    found = by_name([without_instance(obj) for obj in objects])
    for obj in found.values():
        if obj["kind"] == "ServiceAccount":
            obj["metadata"].pop("annotations", None)
        if obj["kind"] == "Deployment":
            obj["spec"]["template"]["spec"]["containers"][0].pop("imagePullPolicy", None)
    return found


@pytest.mark.e2e
def test_the_defaults_are_what_muster_install_applies(rendered: Rendering) -> None:
    expected = [obj for obj in installation(IMAGE) if obj["kind"] != "Namespace"]
    assert comparable(rendered()) == comparable(expected)


@pytest.mark.e2e
def test_the_dashboard_is_what_muster_install_applies(rendered: Rendering) -> None:
    made = comparable(rendered({"dashboard": {"enabled": True}}))
    expected = comparable(dashboard_installation(IMAGE))
    assert {key: made[key] for key in expected} == expected


@pytest.mark.e2e
@pytest.mark.parametrize("custom", [False, True])
def test_rights_and_policies_for_workloads_are_what_muster_install_applies(rendered: Rendering, custom: bool) -> None:
    values = {"workloads": {"enabled": True, "policies": True}, "crds": {"enabled": custom}}
    made = comparable(rendered(values))
    expected = comparable(
        [*workload_installation(), *membership_policies("muster", "muster-system", native=not custom)]
    )
    assert {key: made.get(key) for key in expected} == expected
    assert len(made) - len(comparable(rendered({"crds": {"enabled": custom}}))) == len(expected)


@pytest.mark.e2e
def test_custom_resources_are_ours_and_stay(rendered: Rendering) -> None:
    made = [obj for obj in rendered({"crds": {"enabled": True}}) if obj["kind"] == "CustomResourceDefinition"]
    assert [obj["spec"] for obj in made] == [
        obj["spec"] for obj in sorted(crds(), key=lambda it: it["spec"]["names"]["plural"])
    ]
    assert {obj["metadata"]["annotations"]["helm.sh/resource-policy"] for obj in made} == {"keep"}


@pytest.mark.e2e
def test_values_reach_the_pods(rendered: Rendering) -> None:
    values = {
        "replicas": 3,
        "schedulerNames": ["gangs", "more"],
        "featureGates": {"InferJobGang": False},
        "configuration": {"podMaxBackoffSeconds": 20},
        "decisionLog": {"enabled": True, "claim": "shared"},
        "nodeSelector": {"role": "infra"},
        "tolerations": [{"key": "x", "operator": "Exists"}],
        "podAnnotations": {"a": "b"},
        "extraArgs": ["--seed=7"],
        "rbac": {"extraRules": [{"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["list"]}]},
        "metrics": {"serviceMonitor": {"enabled": True}},
    }
    made = rendered(values)
    (deployment,) = [obj for obj in made if obj["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    arguments = pod["containers"][0]["args"]
    assert deployment["spec"]["replicas"] == 3
    assert {"--scheduler-name=gangs", "--scheduler-name=more", "--feature-gates=InferJobGang=false"} <= set(arguments)
    assert {"--config=/etc/muster/configuration.yaml", "--seed=7"} <= set(arguments)
    assert pod["nodeSelector"] == {"role": "infra"}
    assert pod["securityContext"]["fsGroup"] == 65532
    assert {volume["name"] for volume in pod["volumes"]} == {"tmp", "configuration", "decisions"}
    (config,) = [obj for obj in made if obj["kind"] == "ConfigMap"]
    assert yaml.safe_load(config["data"]["configuration.yaml"])["podMaxBackoffSeconds"] == 20
    (role,) = [obj for obj in made if obj["kind"] == "ClusterRole"]
    assert role["rules"][-1]["resources"] == ["things"]
    assert {"Service", "ServiceMonitor"} <= {obj["kind"] for obj in made}


@pytest.mark.e2e
@pytest.mark.parametrize("values", [{"replica": 3}, {"replicas": "two"}, {"image": {"pullPolicy": "Sometimes"}}])
def test_values_that_are_not_there_are_refused(helm: Path, tmp_path: Path, values: Obj) -> None:
    given = tmp_path / "values.yaml"
    given.write_text(json.dumps(values))
    done = subprocess.run([helm, "template", "muster", CHART, "--values", given], capture_output=True, check=False)
    assert done.returncode != 0


@pytest.mark.e2e
def test_helm_finds_no_fault(helm: Path) -> None:
    done = subprocess.run([helm, "lint", "--strict", CHART], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
