"""Warns of objects that are stored and that nothing here acts on: nobody should wait for an effect that never comes."""

from __future__ import annotations

from collections.abc import Mapping

from muster.server.resources.kind import Obj, Write

STORED_ONLY: Mapping[tuple[str, str], str] = {
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("autoscaling", "horizontalpodautoscalers"): "no metrics are measured here, so nothing is scaled",
    ("certificates.k8s.io", "clustertrustbundles"): "simulated nodes mount no volumes",
    ("networking.k8s.io", "ingresses"): "no ingress controller runs here; one that you start can act on it",
    ("networking.k8s.io", "networkpolicies"): "simulated nodes carry no traffic",
    ("networking.k8s.io", "ipaddresses"): "addresses of Services are assigned without it",
    ("networking.k8s.io", "servicecidrs"): "addresses of Services come from 10.96.0.0/16 only",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "requests are not queued by priority levels here",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): "requests are not queued by priority levels here",
    ("storage.k8s.io", "volumeattributesclasses"): "simulated volumes have no attributes",
    ("storage.k8s.io", "volumeattachments"): "simulated nodes attach no volumes",
}


async def warn_stored_only(write: Write, new: Obj, old: Obj | None) -> None:
    """For the kinds of `STORED_ONLY`."""
    if write.operation == "CREATE" and not write.subresource:
        reason = STORED_ONLY[(write.kind.group, write.kind.plural)]
        deprecated = reason.startswith("v1 ")
        write.warnings.append(
            reason if deprecated else f"{write.kind.kind} is stored, and nothing acts on it: {reason}"
        )
