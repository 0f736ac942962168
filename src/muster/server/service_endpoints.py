"""Finds the address behind a Service that the server itself calls: for webhooks, conversions and APIServices.

A mapping that the operator gave (`--webhook-endpoint`) comes first; else the Service's EndpointSlices are asked. The
certificate of whoever answers must name the Service (`name.namespace.svc`), wherever it listens.
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.server.resources.kind import Obj, Reader


class NoEndpointError(Exception):
    """There is nobody to call. `reason` is the one word for it that an APIService's condition has."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ServiceEndpoints:
    """Where Services are reached from this process."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self.given = dict(given or {})  # "namespace/name" -> "host:port"

    def address(self, reader: Reader, namespace: str, name: str, port: int) -> str:
        """host:port of an endpoint of a service. Raises NoEndpointError."""
        given = self.given.get(f"{namespace}/{name}")
        return given if given is not None else _found(reader, namespace, name, port)


def server_name(namespace: str, name: str) -> str:
    """The name that the certificate of a service's server must have."""
    return f"{name}.{namespace}.svc"


def _found(reader: Reader, namespace: str, name: str, port: int) -> str:
    service = reader.get("services", "", namespace, name)
    if service is None:
        raise NoEndpointError("ServiceNotFound", f'service "{name}" not found')
    spec: Obj = service.get("spec") or {}
    found = next((each for each in spec.get("ports") or () if each.get("port") == port), None)
    if found is None:
        raise NoEndpointError("ServicePortError", f'no service port {port} found for service "{name}"')
    if spec.get("type") == "ExternalName":
        return f"{spec.get('externalName')}:{port}"
    for each in reader.list("endpointslices", "discovery.k8s.io", namespace):
        if (each["metadata"].get("labels") or {}).get("kubernetes.io/service-name") != name:
            continue
        number = next(
            (p.get("port") for p in each.get("ports") or () if (p.get("name") or "") == found.get("name", "")), None
        )
        for endpoint in each.get("endpoints") or ():
            if number and (endpoint.get("conditions") or {}).get("ready") is not False and endpoint.get("addresses"):
                address = endpoint["addresses"][0]
                return f"[{address}]:{number}" if ":" in address else f"{address}:{number}"
    raise NoEndpointError("MissingEndpoints", f'no endpoints available for service "{name}"')
