"""RuntimeClasses: rules. What a class adds to a pod is admission's (`server.admission.runtime_class`)."""

from __future__ import annotations

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import invalid, required, unchanged
from muster.server.resources.rules.labels import validate_labels
from muster.server.resources.rules.placement import validate_tolerations
from muster.server.resources.rules.pod_resources import validate_quantities


def validate(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    handler = new.get("handler") or ""
    found = (
        [required("handler")]
        if not handler
        else [invalid("handler", handler, text) for text in formats.dns_label(handler)]
    )
    overhead: Obj = new.get("overhead") or {}
    found += validate_quantities(overhead.get("podFixed"), "overhead.podFixed")
    scheduling: Obj = new.get("scheduling") or {}
    found += validate_labels("scheduling.nodeSelector", scheduling.get("nodeSelector"))
    found += validate_tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations")
    if old is not None:
        found += unchanged("handler", handler, old.get("handler"))
    return found
