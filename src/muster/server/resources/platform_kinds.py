"""The kinds of autoscaling, certificates, networking, node, flow control and volume attributes.

Part of the list in `muster.server.served_kinds`. Most of them are stored for the programs that read them; which of
them something here acts on is in `docs/api.md`, and `server.admission.stored_only` warns of the others.
"""

from __future__ import annotations

from functools import partial

from muster.server.resources import autoscaler_versions, print_platform, selectable
from muster.server.resources.kind import Kind

_networking = partial(Kind, "networking.k8s.io", ("v1",))
_certificates = partial(Kind, "certificates.k8s.io", ("v1",), name_rule="path")
_flowcontrol = partial(Kind, "flowcontrol.apiserver.k8s.io", ("v1",), generation=True, unconditional_update=False)
_STATUS = ("status",)

PLATFORM_KINDS: tuple[Kind, ...] = (
    Kind(
        "autoscaling",
        ("v2", "v1"),
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        True,
        short_names=("hpa",),
        categories=("all",),
        subresources=_STATUS,
        columns=print_platform.AUTOSCALERS,
        convert=autoscaler_versions.convert,
    ),
    _certificates(
        "CertificateSigningRequest",
        "certificatesigningrequests",
        False,
        short_names=("csr",),
        subresources=("status", "approval"),
        columns=print_platform.SIGNING_REQUESTS,
        selectable={"spec.signerName": selectable.field("spec", "signerName")},
    ),
    _certificates(
        "ClusterTrustBundle",
        "clustertrustbundles",
        False,
        columns=print_platform.TRUST_BUNDLES,
        selectable={"spec.signerName": selectable.field("spec", "signerName")},
        unconditional_update=False,
    ),
    _networking(
        "Ingress",
        "ingresses",
        True,
        singular="ingress",
        short_names=("ing",),
        subresources=_STATUS,
        columns=print_platform.INGRESSES,
        generation=True,
    ),
    _networking(
        "IngressClass",
        "ingressclasses",
        False,
        columns=print_platform.INGRESS_CLASSES,
        generation=True,
    ),
    _networking(
        "NetworkPolicy",
        "networkpolicies",
        True,
        short_names=("netpol",),
        columns=print_platform.NETWORK_POLICIES,
        generation=True,
    ),
    _networking(
        "IPAddress",
        "ipaddresses",
        False,
        short_names=("ip",),
        columns=print_platform.IP_ADDRESSES,
        selectable={"spec.parentRef.name": selectable.field("spec", "parentRef", "name")},
        name_rule="path",
    ),
    _networking(
        "ServiceCIDR",
        "servicecidrs",
        False,
        subresources=_STATUS,
        columns=print_platform.SERVICE_CIDRS,
    ),
    Kind(
        "node.k8s.io",
        ("v1",),
        "RuntimeClass",
        "runtimeclasses",
        False,
        columns=print_platform.RUNTIME_CLASSES,
        unconditional_update=False,
    ),
    _flowcontrol("FlowSchema", "flowschemas", False, subresources=_STATUS, columns=print_platform.FLOW_SCHEMAS),
    _flowcontrol(
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        False,
        subresources=_STATUS,
        columns=print_platform.PRIORITY_LEVELS,
    ),
    Kind(
        "storage.k8s.io",
        ("v1",),
        "VolumeAttributesClass",
        "volumeattributesclasses",
        False,
        short_names=("vac",),
        columns=print_platform.VOLUME_ATTRIBUTES_CLASSES,
        unconditional_update=False,
    ),
)
