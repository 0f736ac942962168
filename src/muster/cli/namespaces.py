"""The options that narrow a listing to a namespace, as kubectl spells them."""

from __future__ import annotations

from dataclasses import dataclass

import click

from muster.cli.option_groups import grouped


@dataclass(frozen=True, slots=True)
class NamespaceOptions:
    """`--namespace`, and `--all-namespaces`, which wins over it and is what these listings do without either."""

    namespace: str | None
    all_namespaces: bool

    @property
    def only(self) -> str | None:
        """The one namespace to list; None for all."""
        return None if self.all_namespaces else self.namespace


options = grouped(
    "namespaces",
    NamespaceOptions,
    click.option("--namespace", "-n", default=None, help="Only this namespace."),
    click.option("--all-namespaces", "-A", is_flag=True, help="Every namespace; the default."),
)
