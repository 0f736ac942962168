"""`muster install`: print or apply the one manifest that brings Muster into a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muster import __version__
from muster.cli import exits

if TYPE_CHECKING:
    from muster.client.http import HTTPClient

MANAGER = "muster-install"
IMAGE = f"muster:{__version__}"
_FILE = click.Path(dir_okay=False, path_type=Path)
_PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Deployment": "deployments",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Service": "services",
    "NetworkPolicy": "networkpolicies",
    "CustomResourceDefinition": "customresourcedefinitions",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}


@click.command(name="install")
@click.option("--crds", "with_crds", is_flag=True, help="Also the custom resources, for servers without the group API.")
@click.option("--dashboard", "with_dashboard", is_flag=True, help="Also the dashboard, which only reads.")
@click.option("--workloads", "with_workloads", is_flag=True, help="Also the rights to make groups for workloads.")
@click.option("--policies", "with_policies", is_flag=True, help="Also the policies that put pods into those groups.")
@click.option("--namespace", "-n", default="muster-system", show_default=True, help="Where to install.")
@click.option("--scheduler-name", default="muster", show_default=True, help="schedulerName that pods will use.")
@click.option("--image", default=IMAGE, show_default=True, help="Image of the scheduler.")
@click.option("--decision-log", is_flag=True, help="Record decisions in a volume of each pod, for `muster replay`.")
@click.option("--decision-log-claim", metavar="NAME", help="Record them in this PersistentVolumeClaim instead.")
@click.option("--dry-run", is_flag=True, help="Print the manifest and apply nothing.")
@click.option("--kubeconfig", type=_FILE, help="Kubeconfig; default: KUBECONFIG, ~/.kube/config, or the pod's account.")
@click.option("--context", default=None, help="Context of the kubeconfig.")
def command(
    with_crds: bool,
    with_dashboard: bool,
    with_workloads: bool,
    with_policies: bool,
    namespace: str,
    scheduler_name: str,
    image: str,
    decision_log: bool,
    decision_log_claim: str | None,
    dry_run: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> int:
    """Install Muster beside kube-scheduler: its rights, two replicas with leader election, a disruption budget.

    Applying again changes what differs and nothing else. What was installed goes away with
    "muster install --dry-run | kubectl delete -f -".
    """
    from muster.api.crds import crds
    from muster.api.installation import installation
    from muster.api.validation import formats

    for option, text in (("--namespace", namespace), ("--scheduler-name", scheduler_name)):
        complaints = formats.dns_label(text)
        if complaints:
            raise exits.Failure(f"{option} {text!r}: {complaints[0]}", exits.USAGE)
    recorded = decision_log_claim or ("" if decision_log else None)
    objects = [*(crds() if with_crds else []), *installation(image, namespace, scheduler_name, recorded)]
    if with_dashboard:
        from muster.api.dashboard_installation import dashboard_installation

        objects += dashboard_installation(image, namespace)
    if with_workloads:
        from muster.api.workload_installation import workload_installation

        objects += workload_installation(namespace)
    if with_policies:
        from muster.api.membership_policy import membership_policies

        objects += membership_policies(scheduler_name, namespace, native=not with_crds)
    if dry_run:
        from muster.cli.yaml_text import to_documents

        click.echo(to_documents(objects), nl=False)
        return exits.OK
    asyncio.run(_apply(objects, kubeconfig, context))
    return exits.OK


async def _apply(objects: list[dict[str, Any]], kubeconfig: Path | None, context: str | None) -> None:
    from muster.client import kubeconfig as config
    from muster.client.config import ConfigError
    from muster.client.http import HTTPClient

    try:
        found = config.load(kubeconfig, context)
    except ConfigError as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from error
    async with HTTPClient(found) as client:
        for obj in objects:
            await _apply_one(client, obj)


async def _apply_one(client: HTTPClient, obj: dict[str, Any]) -> None:
    from muster.api.errors import ApiError
    from muster.api.resources import Resource

    group, _, version = obj["apiVersion"].rpartition("/")
    meta = obj["metadata"]
    resource = Resource(group, version, _PLURALS[obj["kind"]], obj["kind"], "namespace" in meta)
    what = f"{obj['kind'].lower()} {meta['name']}"
    try:
        await client.patch(
            resource, meta["name"], obj, meta.get("namespace"), type="apply", field_manager=MANAGER, force=True
        )
    except ApiError as error:
        advice = "; an administrator can apply what --dry-run prints" if error.code == 403 else ""
        raise exits.Failure(f"{what}: {error.message}{advice}", exits.UNAVAILABLE) from error
    click.echo(f"{what} applied")
