"""The options that narrow a listing to a namespace, as kubectl spells them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--namespace`, and `--all-namespaces`, which wins over it and is what these listings do without either."""

    @wraps(command)
    def with_namespace(*args: Any, all_namespaces: bool, namespace: str | None, **options: Any) -> Any:
        return command(*args, namespace=None if all_namespaces else namespace, **options)

    every = click.option("--all-namespaces", "-A", is_flag=True, help="Every namespace; the default.")
    return click.option("--namespace", "-n", default=None, help="Only this namespace.")(every(with_namespace))
