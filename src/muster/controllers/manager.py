"""The list of all controllers, and the manager that runs them over one set of informers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from muster.api.gates import DEFAULT, FeatureGates
from muster.api.groups import GROUP
from muster.api.manifests import CRD_GROUP
from muster.api.resources import (
    CERTIFICATE_SIGNING_REQUESTS,
    COMPOSITE_POD_GROUPS,
    CRON_JOBS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DEVICE_TAINT_RULES,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    SERVICES,
    STATEFUL_SETS,
    WORKLOADS,
    Resource,
)
from muster.certificates import Authority
from muster.client.clock import Clock, SystemClock
from muster.client.protocol import Client
from muster.controllers.certificate_signing import CertificateSigning
from muster.controllers.collections import Collections
from muster.controllers.controller import Context, Controller
from muster.controllers.cron_job import CronJobController
from muster.controllers.custom_resource_definition import CustomResourceDefinitions
from muster.controllers.daemon_set import DaemonSetController
from muster.controllers.deployment import DeploymentController
from muster.controllers.device_taint_eviction import DeviceTaintEviction
from muster.controllers.discovery import discover
from muster.controllers.disruption import Disruption
from muster.controllers.endpoint_slice import EndpointSliceController
from muster.controllers.event_expiry import EventExpiry
from muster.controllers.garbage_collector import GarbageCollector
from muster.controllers.horizontal_pod_autoscaler import AutoscalerNotice
from muster.controllers.informers import Informers
from muster.controllers.job import JobController
from muster.controllers.namespace import NamespaceDeletion
from muster.controllers.node_lifecycle import NodeLifecycle
from muster.controllers.persistent_volume import PersistentVolumeController
from muster.controllers.podgroup_protection import PodGroupProtection
from muster.controllers.replica_set import ReplicaSetController, ReplicationManager
from muster.controllers.resource_claim import ResourceClaimController
from muster.controllers.resource_quota import ResourceQuotaController
from muster.controllers.root_ca_publisher import RootCaPublisher
from muster.controllers.service_account import DefaultServiceAccount
from muster.controllers.simulated_managers.jobset import SimulatedJobSets
from muster.controllers.simulated_managers.leader_worker_set import SimulatedLeaderWorkerSets
from muster.controllers.stateful_set import StatefulSetController
from muster.controllers.workloads.controller import WorkloadController
from muster.controllers.workloads.kinds import WATCHED
from muster.controllers.workloads.settings import WorkloadSettings

CONTROLLERS: tuple[type[Controller], ...] = (
    PodGroupProtection,
    NamespaceDeletion,
    CustomResourceDefinitions,
    GarbageCollector,
    EventExpiry,
    Disruption,
    JobController,
    CronJobController,
    ReplicaSetController,
    ReplicationManager,
    DeploymentController,
    StatefulSetController,
    DaemonSetController,
    EndpointSliceController,
    ResourceQuotaController,
    PersistentVolumeController,
    DefaultServiceAccount,
    RootCaPublisher,
    NodeLifecycle,
    CertificateSigning,
    AutoscalerNotice,
    DeviceTaintEviction,
    ResourceClaimController,
    WorkloadController,
)

SIMULATED_MANAGERS: Mapping[str, type[Controller]] = {
    "jobset": SimulatedJobSets,
    "lws": SimulatedLeaderWorkerSets,
}

# Kinds of which controllers read more than metadata.
_UNSTRUCTURED = frozenset(
    (group, resource.plural)
    for resource in (
        CERTIFICATE_SIGNING_REQUESTS,
        COMPOSITE_POD_GROUPS,
        CUSTOM_RESOURCE_DEFINITIONS,
        CRON_JOBS,
        DAEMON_SETS,
        DEPLOYMENTS,
        JOBS,
        LEASES,
        NAMESPACES,
        NODES,
        PERSISTENT_VOLUME_CLAIMS,
        PERSISTENT_VOLUMES,
        POD_DISRUPTION_BUDGETS,
        POD_GROUPS,
        REPLICA_SETS,
        REPLICATION_CONTROLLERS,
        RESOURCE_CLAIM_TEMPLATES,
        RESOURCE_SLICES,
        DEVICE_TAINT_RULES,
        RESOURCE_CLAIMS,
        RESOURCE_QUOTAS,
        SERVICES,
        STATEFUL_SETS,
        WORKLOADS,
        *WATCHED,
    )
    for group in ((GROUP, CRD_GROUP) if resource.group == GROUP else (resource.group,))
)


class ControllerManager:
    """The chosen controllers on one client. `run` works until it is cancelled."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        which: Iterable[str] | None = None,
        collections: Sequence[Resource] | None = None,
        controllers: Sequence[type[Controller]] = CONTROLLERS,
        gates: FeatureGates = DEFAULT,
        authority: Authority | None = None,
        workloads: WorkloadSettings | None = None,
    ) -> None:
        self._authority = authority
        self._workloads = workloads
        self._kinds = controllers
        self._gates = gates
        self._client = client
        self._clock = clock or SystemClock()
        self._which = None if which is None else frozenset(which)
        self._collections = collections
        self.controllers: list[Controller] = []
        self.ready = asyncio.Event()

    async def run(self) -> None:
        collections, served = self._collections, None
        if collections is None:
            collections = await discover(self._client)
            served = frozenset((each.group, each.plural) for each in collections)
        informers = Informers(self._client, self._clock, _UNSTRUCTURED, served)
        known = Collections(collections)
        known.on_change(informers.serve, informers.withdraw)
        context = Context(self._client, informers, self._clock, known, self._gates, self._authority, self._workloads)
        self.controllers = [make(context) for make in self._kinds if self._which is None or make.name in self._which]
        for controller in self.controllers:
            controller.setup()
        async with asyncio.TaskGroup() as group:
            group.create_task(informers.run())
            for controller in self.controllers:
                group.create_task(controller.run())
            await informers.wait_synced()
            self.ready.set()

    @property
    def idle(self) -> bool:
        """Whether no controller has anything to do now."""
        return self.ready.is_set() and all(controller.queue.idle for controller in self.controllers)


async def run_all(
    client: Client,
    *,
    clock: Clock | None = None,
    which: Iterable[str] | None = None,
    collections: Sequence[Resource] | None = None,
) -> None:
    """Run the controllers (all, or those named) until cancelled."""
    await ControllerManager(client, clock=clock, which=which, collections=collections).run()
