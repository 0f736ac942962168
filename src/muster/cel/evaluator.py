"""The one place that imports the evaluator. Where no wheel exists, everything else of Muster still works."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

from muster.cel.errors import CelMissingError

# The evaluator's own libraries that are part of Kubernetes' environment, in the versions that it uses.
_EXTENSIONS = {
    "sets": "latest",
    "lists": "latest",
    "two-var-comprehensions": "latest",
    "bindings": "latest",
    "optional": "latest",
    "strings": "2",
}


@cache
def module() -> Any:
    """The evaluator. Raises CelMissingError where it is not installed."""
    try:
        from cel_expr_python import cel
    except ImportError as error:
        raise CelMissingError(str(error)) from None
    return cel


def missing() -> str:
    """What to tell a client that sends an expression; empty where expressions work."""
    try:
        module()
    except CelMissingError as error:
        return str(error)
    return ""


def new_environment(
    variables: dict[str, Any], functions: list[Any], *, declared: str = "", messages: Any = None
) -> Any:
    """An environment of the evaluator with the libraries of Kubernetes' own.

    `functions` come as an extension, because that adds overloads to functions that exist already. `declared` is a text
    of the evaluator's configuration: the only form in which it knows parameters of opaque types. `messages` is a pool
    of protobuf descriptors.
    """
    cel = module()
    listed = "".join(f"- name: {name}\n  version: {version}\n" for name, version in _EXTENSIONS.items())
    config = cel.NewEnvConfigFromYaml(f"extensions:\n{listed}{declared}")
    extension = cel.CelExtension("kubernetes", functions)
    if messages is None:
        return cel.NewEnv(config=config, variables=variables, extensions=[extension])
    return cel.NewEnv(descriptor_pool=messages, config=config, variables=variables, extensions=[extension])


def regex_environment() -> Any:
    """An environment with the evaluator's own search by regular expressions, which expressions of users do not have."""
    cel = module()
    config = cel.NewEnvConfigFromYaml("extensions:\n- name: regex\n- name: optional\n")
    return cel.NewEnv(config=config, variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING})


def protobuf() -> tuple[ModuleType, ModuleType]:
    """The modules that build descriptors, which the evaluator needs for objects with declared fields."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
    except ImportError as error:
        raise CelMissingError(str(error)) from None
    return descriptor_pb2, descriptor_pool
