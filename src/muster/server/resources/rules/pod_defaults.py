"""What a pod's spec says when its author said nothing. Used for pods and for every pod template."""

from __future__ import annotations

from typing import Any

from muster.server.resources.kind import Obj

_VOLUME_MODES = ("configMap", "secret", "downwardAPI", "projected")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def default_pod_spec(spec: Obj) -> None:
    """Fills in a pod spec, in place."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    if not spec["schedulerName"]:
        spec["schedulerName"] = "default-scheduler"
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    host_network = bool(spec.get("hostNetwork"))
    for key in ("initContainers", "containers"):
        for container in spec.get(key) or ():
            _container(container, host_network)
    for volume in spec.get("volumes") or ():
        _volume(volume)
    _account(spec)


def default_pod(pod: Obj) -> None:
    """Fills in a pod, in place: the template's defaults and those that only a pod itself has."""
    spec = pod.get("spec")
    if spec is None:
        spec = pod["spec"] = {}
    default_pod_spec(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    for key in ("initContainers", "containers"):
        for container in spec.get(key) or ():
            requests_from_limits(container)
    if (resources := spec.get("resources")) and resources.get("limits"):
        requests_from_limits(spec)


def requests_from_limits(holder: Obj) -> None:
    """A resource with a limit and no request requests its limit."""
    resources: Obj = holder.get("resources") or {}
    limits: Obj = resources.get("limits") or {}
    if limits:
        requests = resources.get("requests")
        if requests is None:
            requests = resources["requests"] = {}
        for name, quantity in limits.items():
            requests.setdefault(name, quantity)


def _container(container: Obj, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    if container.get("resources") is None:
        container["resources"] = {}
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in _PROBES:
        if container.get(name):
            _probe(container[name])
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and hook.get("httpGet"):
            _http_get(hook["httpGet"])


def pull_policy(image: str) -> str:
    """Always for the moving tag `latest`, IfNotPresent for a tag or a digest that stays."""
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"


def _probe(probe: Obj) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if probe.get("httpGet"):
        _http_get(probe["httpGet"])
    if probe.get("grpc") is not None:
        probe["grpc"].setdefault("service", "")


def _http_get(action: Obj) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def _volume(volume: Obj) -> None:
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}
    for kind in _VOLUME_MODES:
        source: Any = volume.get(kind)
        if source is not None:
            source.setdefault("defaultMode", 420)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def _account(spec: Obj) -> None:
    """The old name of serviceAccountName is kept in step with it."""
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
