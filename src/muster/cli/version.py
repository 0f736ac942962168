"""`muster version`: what is installed."""

from __future__ import annotations

import platform

import click

from muster import __version__
from muster.cli import output


@click.command(name="version")
@output.option
def command(output_format: str) -> None:
    """Print the version of Muster and of the API versions it speaks."""
    facts = {
        "muster": __version__,
        "python": platform.python_version(),
        "api": "scheduling.k8s.io/v1beta1, v1alpha3, v1alpha2",
    }
    output.write(facts, output_format, lambda: "\n".join(f"{name:<8}{value}" for name, value in facts.items()))
