"""Ingresses, IngressClasses, NetworkPolicies, IPAddresses and ServiceCIDRs: defaults and rules."""

from __future__ import annotations

import ipaddress
from typing import Any

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import (
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
    too_long,
    unchanged,
)
from muster.server.resources.rules.formats import port_name
from muster.server.resources.rules.placement import validate_label_selector
from muster.server.resources.rules.pod_spec import port_number

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_SUFFIXES = ("/..", "/.")
_LONGEST_CONTROLLER = 250


# --- ingresses -------------------------------------------------------------------------------------


def validate_ingress(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    found: list[FieldError] = []
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        found.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if spec.get("defaultBackend") is not None:
        found += _backend(spec["defaultBackend"], "spec.defaultBackend")
    for position, rule in enumerate(spec.get("rules") or ()):
        path = f"spec.rules[{position}]"
        found += _host(rule.get("host") or "", f"{path}.host")
        if rule.get("http") is not None:
            found += _http_paths(rule["http"], f"{path}.http")
    for position, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            found += _host(host, f"spec.tls[{position}].hosts[{number}]")
    name = spec.get("ingressClassName")
    if name is not None:
        found += [invalid("spec.ingressClassName", name, text) for text in formats.dns_subdomain(name)]
    return found


def _host(host: str, path: str) -> list[FieldError]:
    if not host:
        return []
    try:
        ipaddress.ip_address(host)
        return [invalid(path, host, "must be a DNS name, not an IP address")]
    except ValueError:
        plain = host.removeprefix("*.")
        return [invalid(path, host, text) for text in formats.dns_subdomain(plain)]


def _http_paths(http: Obj, path: str) -> list[FieldError]:
    if not http.get("paths"):
        return [required(f"{path}.paths")]
    found: list[FieldError] = []
    for position, each in enumerate(http["paths"]):
        at = f"{path}.paths[{position}]"
        kind, text = each.get("pathType"), each.get("path") or ""
        if kind is None:
            found.append(required(f"{at}.pathType", "pathType must be specified"))
            continue
        if kind not in _PATH_TYPES:
            found.append(not_supported(f"{at}.pathType", kind, _PATH_TYPES))
        elif (text or kind != "ImplementationSpecific") and not text.startswith("/"):
            found.append(invalid(f"{at}.path", text, "must be an absolute path"))
        if kind in ("Exact", "Prefix"):
            found += [invalid(f"{at}.path", text, f"must not contain '{bad}'") for bad in _BAD_SEQUENCES if bad in text]
            found += [
                invalid(f"{at}.path", text, f"cannot end with '{bad}'") for bad in _BAD_SUFFIXES if text.endswith(bad)
            ]
        found += _backend(each.get("backend") or {}, f"{at}.backend")
    return found


def _backend(backend: Obj, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return [required(f"{path}.resource.{key}") for key in ("kind", "name") if not resource.get(key)]
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name = service.get("name") or ""
    found = [invalid(f"{path}.service.name", name, text) for text in formats.dns_label(name)] if name else []
    if not name:
        found.append(required(f"{path}.service.name"))
    port: Obj = service.get("port") or {}
    if port.get("name") and port.get("number"):
        found.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        found += [invalid(f"{path}.service.port.name", port["name"], text) for text in port_name(port["name"])]
    elif port.get("number"):
        found += port_number(f"{path}.service.port.number", port["number"])
    else:
        found.append(required(path, "port name or number is required"))
    return found


def validate_ingress_class(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    controller = spec.get("controller") or ""
    found: list[FieldError] = []
    if len(controller) > _LONGEST_CONTROLLER:
        found.append(too_long("spec.controller", _LONGEST_CONTROLLER))
    domain, _, path = controller.partition("/")
    if not controller:
        found.append(required("spec.controller"))
    elif not domain or not path:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        found.append(invalid("spec.controller", controller, text))
    else:
        found += [invalid("spec.controller", controller, text) for text in formats.dns_subdomain(domain)]
    parameters: Obj | None = spec.get("parameters")
    if parameters is not None:
        found += _parameters(parameters)
    if old is not None:
        found += unchanged("spec.controller", controller, (old.get("spec") or {}).get("controller"))
    return found


def default_ingress_class(obj: Obj) -> None:
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def _parameters(parameters: Obj) -> list[FieldError]:
    path = "spec.parameters"
    found = [required(f"{path}.{key}", f"{key} is required") for key in ("kind", "name") if not parameters.get(key)]
    scope = parameters.get("scope")
    found += one_of(f"{path}.scope", scope, ("Cluster", "Namespace"))
    if scope == "Namespace" and not parameters.get("namespace"):
        found.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    if scope == "Cluster" and parameters.get("namespace"):
        found.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    return found


# --- network policies ------------------------------------------------------------------------------


def default_network_policy(policy: Obj) -> None:
    spec = policy.get("spec")
    if spec is None:
        spec = policy["spec"] = {}
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def validate_network_policy(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    found = validate_label_selector(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for position, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{position}]"
            for number, port in enumerate(rule.get("ports") or ()):
                found += _policy_port(port, f"{path}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                found += _peer(peer, f"{path}.{peers}[{number}]")
    types: list[Any] = spec.get("policyTypes") or []
    if len(types) > 2:
        found.append(invalid("spec.policyTypes", types, "may not specify more than two policyTypes"))
        return found
    for position, each in enumerate(types):
        found += one_of(f"spec.policyTypes[{position}]", each, ("Ingress", "Egress"))
    return found


def _policy_port(port: Obj, path: str) -> list[FieldError]:
    found = one_of(f"{path}.protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))
    number, end = port.get("port"), port.get("endPort")
    if isinstance(number, int):
        found += port_number(f"{path}.port", number)
        if end is not None:
            if end < number:
                found.append(invalid(f"{path}.endPort", end, "must be greater than or equal to `port`"))
            found += port_number(f"{path}.endPort", end)
        return found
    if number is not None:
        found += [invalid(f"{path}.port", number, text) for text in port_name(number)]
    if end is not None:
        why = "when `port` is non-numeric" if number is not None else "when `port` is not specified"
        found.append(invalid(f"{path}.endPort", end, f"may not be specified {why}"))
    return found


def _peer(peer: Obj, path: str) -> list[FieldError]:
    present = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    if not present:
        return [required(path, "must specify a peer")]
    found: list[FieldError] = []
    for key in present:
        if key == "ipBlock":
            found += _ip_block(peer[key], f"{path}.ipBlock")
        else:
            found += validate_label_selector(peer[key], f"{path}.{key}")
    if "ipBlock" in present and len(present) > 1:
        found.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return found


def _ip_block(block: Obj, path: str) -> list[FieldError]:
    text = block.get("cidr") or ""
    if not text:
        return [required(f"{path}.cidr")]
    network = _network(text)
    if network is None:
        return [_not_cidr(f"{path}.cidr", text)]
    found: list[FieldError] = []
    for position, each in enumerate(block.get("except") or ()):
        at = f"{path}.except[{position}]"
        inner = _network(each)
        if inner is None:
            found.append(_not_cidr(at, each))
        elif inner.version != network.version or inner == network or not _contains(network, inner):
            found.append(invalid(at, each, "must be a strict subset of `cidr`"))
    return found


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _contains(outer: _Network, inner: _Network) -> bool:
    return outer.prefixlen < inner.prefixlen and inner.network_address in outer


def _not_cidr(path: str, value: Any) -> FieldError:
    text = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    return invalid(path, value, text)


# --- addresses -------------------------------------------------------------------------------------


def validate_ip_address(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    name = (new.get("metadata") or {}).get("name") or ""
    found: list[FieldError] = []
    try:
        if str(ipaddress.ip_address(name)) != name:
            found.append(invalid("metadata.name", name, f'must be in canonical form ("{ipaddress.ip_address(name)}")'))
    except ValueError:
        text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        found.append(invalid("metadata.name", name, text))
    parent: Obj | None = (new.get("spec") or {}).get("parentRef")
    if parent is None:
        found.append(required("spec.parentRef"))
    else:
        found += [required(f"spec.parentRef.{key}") for key in ("resource", "name") if not parent.get(key)]
    if old is not None:
        found += unchanged("spec.parentRef", parent, (old.get("spec") or {}).get("parentRef"))
    return found


def validate_service_cidr(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    cidrs: list[str] = (new.get("spec") or {}).get("cidrs") or []
    if not cidrs:
        return [required("spec.cidrs", "at least one CIDR required")]
    if len(cidrs) > 2:
        return [invalid("spec", new.get("spec"), "may only hold up to 2 values")]
    networks = [_network(each) for each in cidrs]
    found = [
        _not_cidr(f"spec.cidrs[{position}]", each)
        for position, (each, network) in enumerate(zip(cidrs, networks, strict=True))
        if network is None
    ]
    families = {network.version for network in networks if network is not None}
    if not found and len(cidrs) == 2 and len(families) == 1:
        found.append(
            invalid(
                "spec",
                cidrs,
                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
            )
        )
    if old is not None:
        found += unchanged("spec.cidrs", cidrs, (old.get("spec") or {}).get("cidrs"))
    return found
