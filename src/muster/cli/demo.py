"""`muster demo`: gang scheduling end to end on simulated nodes, printed as it happens.

A control plane with simulated GPU nodes is started on a spare port, the manifests of `examples/` are submitted one
after the other, and every change of a group's condition is printed: gangs that start together, a tree of which two
replicas are enough, a Job, a gang that cannot fit, and one that preempts others.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from muster.api.resources import COMPOSITE_POD_GROUPS, EVENTS, POD_GROUPS, Resource
from muster.cli import dashboard, exits

if TYPE_CHECKING:
    from muster.client.protocol import Client, Obj
    from muster.plane.plane import Plane

NODES, GPUS = 64, 8
TIME_LIMIT_SECONDS = 30.0
SCHEDULED = ("PodGroupInitiallyScheduled", "CompositePodGroupInitiallyScheduled")


@click.command(name="demo")
@click.option("--stay/--no-stay", default=None, help="Keep the dashboard open at the end.  [default: in a terminal]")
def command(stay: bool | None) -> int:
    """Watch gangs being scheduled on 64 simulated nodes, in under a minute, then look at them in a browser."""
    return asyncio.run(_demo(_examples(), stay=sys.stdin.isatty() and sys.stdout.isatty() if stay is None else stay))


def _examples() -> Path:
    """The manifests: beside the sources in a checkout, inside the package when it was installed."""
    package = Path(__file__).parents[1]
    for place in (package / "_examples", package.parents[1] / "examples"):
        if place.is_dir():
            return place
    raise exits.Failure("the example manifests are not installed", exits.UNEXPECTED)


async def _demo(examples: Path, *, stay: bool = False) -> int:
    from muster.plane.options import NodeOptions, Options
    from muster.plane.plane import Plane

    with TemporaryDirectory(prefix="muster-demo-") as directory:
        kubeconfig = Path(directory) / "kubeconfig"
        nodes = NodeOptions(NODES, gpu=GPUS)
        async with Plane(Options(kubeconfig=kubeconfig, nodes=nodes)) as plane:
            click.echo(
                f"A Kubernetes API server with {NODES} nodes of {GPUS} GPUs, in 8 racks and 2 blocks: {plane.url}"
            )
            demo = Demo(plane.client, examples)
            async with demo.reporting():
                await demo.run()
            await _print_next(plane.client, examples)
            if stay:
                await _show_pages(plane)
    return exits.OK


async def _show_pages(plane: Plane) -> None:
    """Serve the dashboard of what the demo left running, until Ctrl-C."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with dashboard.beside(plane) as pages:
        click.echo("")
        click.echo(click.style(f"See the gangs of this demo in a browser: {pages}", bold=True))
        click.echo("Ctrl-C ends the demo.")
        await stop.wait()


class Demo:
    """Submits the examples one after the other, and prints conditions and evictions as they are written."""

    def __init__(self, client: Client, examples: Path) -> None:
        self.client = client
        self.examples = examples
        self.start = time.monotonic()
        self._printed: dict[tuple[str, str], str] = {}  # the last condition of each group

    async def run(self) -> None:
        """Submit every example and wait for the condition that it should lead to."""
        await self._submit("priorities.yaml", quiet=True)
        self._heading("A training gang: eight workers of eight GPUs, one rack, all or nothing")
        await self._submit("training-gang.yaml")
        await self._until(POD_GROUPS, "training", _is_scheduled)
        self._heading("Disaggregated serving: three replicas of prefill and decode groups, two are enough")
        await self._submit("serving-tree.yaml")
        await self._until(COMPOSITE_POD_GROUPS, "service", _is_scheduled)
        self._heading("A Job whose six pods form a gang: it runs all of its indexes at once, that is enough")
        await self._submit("gang-job.yaml")
        await self._until(POD_GROUPS, "sweep", _is_scheduled, of_job=True)
        self._heading("A gang of twelve whole nodes in one rack of eight: it cannot fit, and says so")
        await self._submit("too-large.yaml")
        await self._until(POD_GROUPS, "too-large", _is_refused)
        self._heading("An urgent gang of 46 whole nodes: room is made for it, and for nothing more")
        await self._submit("urgent-gang.yaml")
        await self._until(POD_GROUPS, "urgent", _is_scheduled)

    def _heading(self, title: str) -> None:
        click.echo("")
        click.echo(click.style(title, bold=True))

    def _print(self, text: str) -> None:
        click.echo(f"  {time.monotonic() - self.start:5.1f}s  {text}")

    async def _submit(self, file: str, *, quiet: bool = False) -> None:
        from muster.cli.manifests import objects
        from muster.views.submission import resource_of

        manifests = objects([str(self.examples / file)])
        for obj in manifests:
            resource = await resource_of(self.client, obj["apiVersion"], obj["kind"])
            assert resource is not None, obj["kind"]
            await self.client.create(resource, obj, "default" if resource.namespaced else None)
        if not quiet:
            self._print(f"kubectl apply -f examples/{file}   ({len(manifests)} objects)")

    async def _until(
        self, resource: Resource, name: str, reached: Callable[[Obj], bool], *, of_job: bool = False
    ) -> None:
        """Wait for a condition of a group: the one of that name, or the one that was made for the Job of that name."""
        deadline = time.monotonic() + TIME_LIMIT_SECONDS
        while time.monotonic() < deadline:
            groups = (await self.client.list(resource, "default")).items
            named = [obj for obj in groups if name == (_owner(obj) if of_job else obj["metadata"]["name"])]
            if named and reached(named[0]):
                await asyncio.sleep(0.3)  # let the watches print it first
                return
            await asyncio.sleep(0.05)
        raise exits.Failure(f"{resource.kind} {name} did not get there in {TIME_LIMIT_SECONDS:.0f} s", exits.NO)

    # --- watching ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def reporting(self) -> AsyncGenerator[None, None]:
        """Inside the block, every change of a group's condition and every eviction is printed."""
        watches = [asyncio.create_task(self._watch_groups(kind)) for kind in (POD_GROUPS, COMPOSITE_POD_GROUPS)]
        watches.append(asyncio.create_task(self._watch_evictions()))
        try:
            yield
        finally:
            for watch in watches:
                watch.cancel()
                with suppress(asyncio.CancelledError):
                    await watch

    async def _watch_groups(self, resource: Resource) -> None:
        async for event in self.client.watch(resource, resource_version="0"):
            if event.object is not None:
                self._report(resource, event.object)

    def _report(self, resource: Resource, obj: Obj) -> None:
        condition = next((c for c in _conditions(obj) if c["type"] in SCHEDULED), None)
        if condition is None:
            return
        name = f"{resource.kind.lower()}/{obj['metadata']['name']}"
        text = condition["reason"] + (f": {condition['message']}" if condition.get("message") else "")
        if self._printed.get((resource.kind, name)) != text:
            self._printed[resource.kind, name] = text
            self._print(f"{name}  {text}")

    async def _watch_evictions(self) -> None:
        async for event in self.client.watch(EVENTS, resource_version="0"):
            obj = event.object
            if obj is not None and obj.get("reason") == "Preempted" and event.type == "ADDED":
                pod: Obj = obj.get("regarding") or {}
                preemptor: Obj = obj.get("related") or {}
                if pod.get("kind") == "Pod":
                    self._print(f"pod/{pod.get('name')}  evicted for {preemptor.get('name')}")


def _owner(obj: Obj) -> str:
    owners: list[Obj] = obj["metadata"].get("ownerReferences") or []
    return next((owner["name"] for owner in owners if owner.get("controller")), "")


def _conditions(obj: Obj) -> list[dict[str, Any]]:
    status: Obj = obj.get("status") or {}
    return status.get("conditions") or []


def _is_scheduled(obj: Obj) -> bool:
    return any(c["type"] in SCHEDULED and c["status"] == "True" for c in _conditions(obj))


def _is_refused(obj: Obj) -> bool:
    return any(c["type"] in SCHEDULED and c["reason"] == "Unschedulable" for c in _conditions(obj))


async def _print_next(client: Client, examples: Path) -> None:
    """Print why the group that does not fit is pending, what is free, and what to do next."""
    from muster.cli import explain, live, topology
    from muster.engine.cluster_snapshot import take_snapshot
    from muster.views.schedulers import scheduler_for

    snapshot = await take_snapshot(client)
    click.echo("")
    click.echo(click.style("$ muster explain podgroup/too-large", bold=True))
    click.echo(explain.screen(explain.explain_in(snapshot, "PodGroup", "default", "too-large"), live.width()))
    click.echo("")
    click.echo(click.style("$ muster topology", bold=True))
    click.echo(topology.screen(topology.topology(scheduler_for(snapshot)), live.width()))
    click.echo("")
    click.echo("Go on with a cluster of your own:")
    for line in _next_steps(examples):
        click.echo(f"  {line}")


def _next_steps(examples: Path) -> list[str]:
    """Three commands that work as they are printed, from the directory in which the demo was started."""
    muster = _as_called()
    here = os.path.relpath(examples)
    nodes = f"--nodes {NODES} --node-gpu {GPUS}"
    return [
        f"{muster} up --memory --port 0 {nodes} --kubeconfig kubeconfig   # in another terminal",
        f"kubectl --kubeconfig kubeconfig apply -f {here}/priorities.yaml -f {here}/serving-tree.yaml",
        f"{muster} tree --watch --kubeconfig kubeconfig",
    ]


def _as_called() -> str:
    """How to call this command again: by its name where the shell finds it, else by its path."""
    called = Path(sys.argv[0])
    if not os.access(called, os.X_OK) or called.suffix == ".py":
        return f"{sys.executable} -m muster.cli.main"
    found = shutil.which(called.name)
    return called.name if found is not None and Path(found).samefile(called) else os.path.relpath(called)
