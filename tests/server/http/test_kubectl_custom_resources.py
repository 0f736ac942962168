"""Custom resources as people use them: a real kubectl against a running server with controllers."""

import json
import time
from collections.abc import Iterator

import pytest
from kubectl import Kubectl, needs_kubectl

from muster.testing import Cluster

pytestmark = [pytest.mark.e2e, needs_kubectl]

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    selectableFields: [{jsonPath: .spec.cronSpec}]
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [cronSpec]
            properties:
              cronSpec: {type: string, description: When to run., pattern: '^[0-9*]+$'}
              replicas: {type: integer, default: 1, minimum: 0, maximum: 10}
            x-kubernetes-validations:
            - {rule: "self.replicas < 5 || self.cronSpec != '*'", message: too many for every minute}
          status:
            type: object
            properties: {replicas: {type: integer}}
"""
OBJECT = """
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: mine}
spec: {cronSpec: '5'}
"""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with Cluster(https=True, controllers=True) as cluster:
        assert cluster.kubeconfig is not None
        run = Kubectl(cluster.kubeconfig, tmp_path_factory.mktemp("home"))
        run("apply", "-f", "-", input=DEFINITION)
        run("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=5s")
        yield run


def test_apply_get_explain_scale_and_delete(kubectl: Kubectl) -> None:
    assert "crontab.stable.example.com/mine created" in kubectl("apply", "-f", "-", input=OBJECT)
    shown = kubectl("get", "ct").splitlines()
    assert shown[0].split() == ["NAME", "SPEC", "REPLICAS"]
    assert shown[1].split() == ["mine", "5", "1"]
    assert "crontab.stable.example.com/mine" in kubectl("get", "all", "-o", "name")
    assert "crontabs" in kubectl("api-resources", "--api-group=stable.example.com")
    assert "When to run." in kubectl("explain", "crontab.spec.cronSpec")
    kubectl("scale", "crontab/mine", "--replicas=3")
    assert kubectl("get", "ct", "mine", "-o", "jsonpath={.spec.replicas}") == "3"
    kubectl("patch", "ct", "mine", "--subresource=status", "--type=merge", "-p", '{"status":{"replicas":3}}')
    assert json.loads(kubectl("get", "ct", "mine", "-o", "json"))["status"] == {"replicas": 3}
    assert "mine" in kubectl("get", "ct", "--field-selector", "spec.cronSpec=5", "-o", "name")
    assert kubectl("get", "ct", "--field-selector", "spec.cronSpec=6", "-o", "name") == ""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=OBJECT)
    kubectl("delete", "ct", "mine")


def test_what_is_wrong_is_refused(kubectl: Kubectl) -> None:
    unknown = kubectl("apply", "-f", "-", input=OBJECT.replace("cronSpec: '5'", "cronSpec: '5', foo: 1"), fails=True)
    assert 'unknown field "spec.foo"' in unknown
    wrong = kubectl("apply", "-f", "-", input=OBJECT.replace("'5'", "'x', replicas: 11"), fails=True)
    assert "spec.cronSpec in body should match '^[0-9*]+$'" in wrong
    assert "spec.replicas in body should be less than or equal to 10" in wrong
    rule = kubectl("apply", "-f", "-", input=OBJECT.replace("'5'", "'*', replicas: 7"), fails=True)
    assert "too many for every minute" in rule


def test_deleting_the_definition_deletes_the_objects(kubectl: Kubectl) -> None:
    definition = DEFINITION.replace("crontab", "other").replace("CronTab", "Other")
    definition = definition.replace("shortNames: [ct], categories: [all]", "listKind: OtherList")
    kubectl("apply", "-f", "-", input=definition)
    kubectl("apply", "-f", "-", input=OBJECT.replace("CronTab", "Other"))

    kubectl("delete", "crd", "others.stable.example.com", "--timeout=20s")

    assert "NotFound" in kubectl("get", "others.v1.stable.example.com", fails=True)
    kubectl("apply", "-f", "-", input=definition)
    for _ in range(20):
        if "No resources found" in kubectl("get", "others", "-o", "name") or not kubectl("get", "others", "-o", "name"):
            return
        time.sleep(0.1)
    raise AssertionError("objects of the old definition are back")
