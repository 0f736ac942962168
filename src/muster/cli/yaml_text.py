"""YAML that kubectl reads back as it was meant: text that looks like something else is quoted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from muster.views.scalars import resolve

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):
    """PyYAML's dumper, without anchors and with kubectl's idea of what needs quotes."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    style = None
    if "\n" in text:
        style = "|"
    elif not _is_text(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_text(text: str) -> bool:
    try:
        return resolve(text) == text and isinstance(resolve(text), str)
    except ValueError:
        return False


_Dumper.add_representer(str, _text)


def to_yaml(data: Any) -> str:
    """One document."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=120)


def to_documents(objects: Iterable[Any]) -> str:
    """Several documents, as a file of manifests has them."""
    return "---\n".join(to_yaml(obj) for obj in objects)
