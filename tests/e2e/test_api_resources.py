"""`kubectl api-resources` beside a real kube-apiserver: every resource is served alike, or docs/api.md says why not."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import pytest
from e2e.kube.cluster import RealCluster

from muster.plane.options import Options
from muster.plane.plane import Plane

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs/api.md"
Resources = dict[tuple[str, str], tuple[str, str, str, frozenset[str]]]


def resources(kubectl: Path, kubeconfig: Path) -> Resources:
    """(name, group and version) -> short names, namespaced, kind, verbs."""
    shown = subprocess.run(
        [kubectl, "--kubeconfig", kubeconfig, "api-resources", "--no-headers", "-o", "wide", "--cached=false"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found: Resources = {}
    for line in shown.splitlines():
        match = re.match(r"(\S+)\s+(?:(\S+)\s+)?(\S+)\s+(true|false)\s+(\S+)\s+(\S+)", line)
        assert match is not None, line
        name, short, version, namespaced, kind, verbs = match.groups()
        found[name, version] = (short or "", namespaced, kind, frozenset(verbs.split(",")))
    return found


def not_served() -> set[tuple[str, str]]:
    section = PAGE.read_text().partition("## What is not served")[2]
    return set(re.findall(r"^\| `([a-z]+)` \| `([a-z0-9./]+)` \|", section, re.MULTILINE))


async def test_every_resource_of_a_stock_server_is_served_or_named_as_not_served(tmp_path: Path, kube: Path):
    kubectl = kube / "kubectl"
    with RealCluster(kube, native=False) as cluster:
        real = resources(kubectl, cluster.kubeconfig)
    kubeconfig = tmp_path / "config"
    async with Plane(Options(kubeconfig=kubeconfig, scheduler=False)):
        own = await asyncio.to_thread(resources, kubectl, kubeconfig)
    assert set(real) - set(own) - not_served() == set()
    assert not_served() & set(own) == set()
    differing = {key: (own[key], real[key]) for key in real.keys() & own.keys() if own[key] != real[key]}
    assert differing == {}
