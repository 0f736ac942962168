"""The Helm chart's templates, from the same objects that `muster install` applies.

A template is an object of `muster.api.installation` in which some values are marks: `@@name@@` stands for one of the
chart's expressions, and a mark that is a whole line (an item of a list, or a key) for a block of them. So the chart
and `muster install` cannot drift apart; what only the chart has (a ConfigMap, a Service for metrics, a ServiceMonitor)
is written by hand beside them.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

from muster.api.crds import crds
from muster.api.dashboard_installation import NAME as DASHBOARD
from muster.api.dashboard_installation import dashboard_installation
from muster.api.installation import NAME, installation
from muster.api.membership_policy import membership_policies
from muster.api.workload_installation import ROLE, workload_installation
from muster.cli.yaml_text import to_yaml

Obj = dict[str, Any]

EXPRESSIONS = {
    "annotations": "{{ toJson .Values.serviceAccount.annotations }}",
    "dashboard": '{{ include "muster.fullname" . }}-dashboard',
    "dashboard-resources": "{{ toJson .Values.dashboard.resources }}",
    "image": '{{ include "muster.image" . | quote }}',
    "instance": "{{ .Release.Name }}",
    "max-unavailable": "{{ .Values.podDisruptionBudget.maxUnavailable }}",
    "name": '{{ include "muster.fullname" . }}',
    "namespace": "{{ .Release.Namespace }}",
    "priority-class": "{{ .Values.priorityClassName | quote }}",
    "pull-policy": "{{ .Values.image.pullPolicy }}",
    "replicas": "{{ .Values.replicas }}",
    "resources": "{{ toJson .Values.resources }}",
    "scheduler": "{{ first .Values.schedulerNames }}",
    "verbosity": "{{ .Values.logVerbosity }}",
}
BLOCKS = {
    "arguments": """\
{{- if not (index .Values.configuration "profiles") }}
{{- range .Values.schedulerNames }}
- --scheduler-name={{ . }}
{{- end }}
{{- end }}
{{- if .Values.configuration }}
- --config=/etc/muster/configuration.yaml
{{- end }}
{{- if .Values.featureGates }}
- --feature-gates={{ include "muster.gates" . }}
{{- end }}
{{- if .Values.decisionLog.enabled }}
- --decision-log=/var/log/muster/$(POD_NAME).jsonl
- --decision-log-max-size={{ .Values.decisionLog.maxSize }}
{{- end }}
{{- with .Values.extraArgs }}
{{- toYaml . | nindent <0> }}
{{- end }}""",
    "environment": """\
{{- if .Values.decisionLog.enabled }}
env:
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- end }}""",
    "mounts": """\
{{- if .Values.configuration }}
- name: configuration
  mountPath: /etc/muster
  readOnly: true
{{- end }}
{{- if .Values.decisionLog.enabled }}
- name: decisions
  mountPath: /var/log/muster
{{- end }}""",
    "volumes": """\
{{- if .Values.configuration }}
- name: configuration
  configMap:
    name: {{ include "muster.fullname" . }}
{{- end }}
{{- if .Values.decisionLog.enabled }}
- name: decisions
{{- if .Values.decisionLog.claim }}
  persistentVolumeClaim:
    claimName: {{ .Values.decisionLog.claim }}
{{- else }}
  emptyDir:
    sizeLimit: {{ .Values.decisionLog.sizeLimit }}
{{- end }}
{{- end }}""",
    "group": """\
{{- if and .Values.decisionLog.enabled .Values.decisionLog.claim }}
fsGroup: 65532
{{- end }}""",
    "rules": """\
{{- with .Values.rbac.extraRules }}
{{- toYaml . | nindent <0> }}
{{- end }}""",
    "pod": """\
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}""",
    "pod-labels": """\
{{- with .Values.podLabels }}
{{- toYaml . | nindent <0> }}
{{- end }}""",
    "pod-annotations": """\
{{- if or .Values.podAnnotations .Values.configuration }}
annotations:
{{- if .Values.configuration }}
  checksum/configuration: {{ toJson .Values.configuration | sha256sum }}
{{- end }}
{{- with .Values.podAnnotations }}
{{- toYaml . | nindent <2> }}
{{- end }}
{{- end }}""",
}
_LINE = re.compile(r"^( *)(?:- )?'?@@([a-z-]+)@@'?(?:: null)?$", re.MULTILINE)
_NAMES = {NAME: "@@name@@", DASHBOARD: "@@dashboard@@", ROLE: "@@name@@-workloads"}


def templates() -> dict[str, str]:
    """The generated files of the chart by their paths in it."""
    scheduler = [_of_a_release(obj) for obj in installation("@@image@@", "@@namespace@@", NAME)]
    _, account, *rights, deployment, budget = scheduler
    account["metadata"]["annotations"] = "@@annotations@@"
    next(obj for obj in rights if obj["kind"] == "ClusterRole")["rules"].append("@@rules@@")
    budget["spec"]["maxUnavailable"] = "@@max-unavailable@@"
    _adapt(deployment)
    workloads = [_of_a_release(obj) for obj in workload_installation("@@namespace@@")]
    board = [_of_a_release(obj) for obj in dashboard_installation("@@image@@", "@@namespace@@")]
    for obj in board:
        if obj["kind"] == "Deployment":
            pod = obj["spec"]["template"]["spec"]
            pod["containers"][0] |= {"imagePullPolicy": "@@pull-policy@@", "resources": "@@dashboard-resources@@"}
            pod["@@pod@@"] = None
    files = {
        "templates/rights.yaml": _text([account, *rights]),
        "templates/deployment.yaml": _text([deployment]),
        "templates/budget.yaml": _when(".Values.podDisruptionBudget.enabled", _text([budget])),
        "templates/workloads.yaml": _when(".Values.workloads.enabled", _text(workloads)),
        "templates/policies.yaml": _when(".Values.workloads.policies", _policies()),
        "templates/dashboard.yaml": _when(".Values.dashboard.enabled", _text(board)),
    }
    for definition in crds():
        kept = deepcopy(definition)
        # Helm would delete the groups of all users with the definitions.
        kept["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
        files[f"files/crds/{definition['spec']['names']['plural']}.yaml"] = to_yaml(kept)
    return files


def _policies() -> str:
    """What puts pods into groups at admission: other policies where the group API comes as custom resources."""
    custom, native = (
        _text([_policy_of_a_release(obj) for obj in membership_policies("@@scheduler@@", "@@namespace@@", native=each)])
        for each in (False, True)
    )
    return f"{{{{- if .Values.crds.enabled }}}}\n{custom}{{{{- else }}}}\n{native}{{{{- end }}}}\n"


def _policy_of_a_release(policy: Obj) -> Obj:
    """A policy under the release's name, which its binding refers to."""
    made = deepcopy(policy)
    made["metadata"]["name"] = made["metadata"]["name"].replace(NAME, "@@name@@", 1)
    if "policyName" in made["spec"]:
        made["spec"]["policyName"] = made["metadata"]["name"]
    return made


def _adapt(deployment: Obj) -> None:
    """Put marks where the chart's values decide."""
    spec = deployment["spec"]
    spec["replicas"] = "@@replicas@@"
    template = spec["template"]
    template["metadata"] = {"@@pod-annotations@@": None, **template["metadata"]}
    template["metadata"]["labels"] = {**template["metadata"]["labels"], "@@pod-labels@@": None}
    pod = template["spec"]
    pod["priorityClassName"] = "@@priority-class@@"
    pod["securityContext"] = {**pod["securityContext"], "@@group@@": None}
    pod["@@pod@@"] = None
    pod["volumes"].append("@@volumes@@")
    container = pod["containers"][0]
    own = [each for each in container["args"] if not each.startswith("--scheduler-name=")]
    container["args"] = [*own, "--v=@@verbosity@@", "@@arguments@@"]
    container["imagePullPolicy"] = "@@pull-policy@@"
    container["resources"] = "@@resources@@"
    container["volumeMounts"].append("@@mounts@@")
    container["@@environment@@"] = None


def _of_a_release(value: Any, key: str = "") -> Any:
    """The object with the release's names, and with the release's name among its labels and selectors."""
    if isinstance(value, list):
        return [_of_a_release(each, key) for each in value]
    if isinstance(value, dict):
        made = {inner: _of_a_release(each, inner) for inner, each in value.items()}
        if "app.kubernetes.io/name" in made:
            made["app.kubernetes.io/instance"] = "@@instance@@"
        return made
    if key == "app.kubernetes.io/name" or not isinstance(value, str):
        return value
    if value in _NAMES:
        return _NAMES[value]
    value = value.replace(f"--leader-elect-resource-name={NAME}", "--leader-elect-resource-name=@@name@@")
    return value.replace(f"--allowed-host={DASHBOARD}.", "--allowed-host=@@dashboard@@.")


def _text(objects: list[Obj]) -> str:
    text = "---\n".join(_LINE.sub(_block, to_yaml(obj)) for obj in objects)
    # A value that is a mark as a whole was quoted because of it, and the expression brings quotes where it needs them.
    text = re.sub(r"(?<=[:-] )'(@@[a-z-]+@@)'$", r"\1", text, flags=re.MULTILINE)
    return re.sub(r"@@([a-z-]+)@@", lambda found: EXPRESSIONS[found.group(1)], text)


def _block(found: re.Match[str]) -> str:
    """The block that stands for a line, each of its own lines at that line's depth."""
    indent, name = found.groups()
    if name not in BLOCKS:
        return found.group(0)
    text = re.sub("<([0-9])>", lambda more: str(len(indent) + int(more.group(1))), BLOCKS[name])
    return "\n".join(line if line.startswith("{{-") else f"{indent}{line}" for line in text.splitlines())


def _when(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"
