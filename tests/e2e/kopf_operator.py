"""An operator written with kopf: it writes the status of every Widget and refuses large ones by a webhook.

Run by `kopf run`; the certificate of its webhook is in the files that the environment names.
"""

import os
from typing import Any

import kopf

LARGEST = 10
GROUP = "operators.example.com"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.admission.managed = f"auto.{GROUP}"
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        host="localhost",
        cafile=os.environ["WEBHOOK_CA"],
        certfile=os.environ["WEBHOOK_CERT"],
        pkeyfile=os.environ["WEBHOOK_KEY"],
    )


@kopf.on.validate(GROUP, "v1", "widgets")
def check(spec: Any, **_: Any) -> None:
    if spec.get("size", 0) > LARGEST:
        raise kopf.AdmissionError(f"a widget has at most size {LARGEST}", code=422)


@kopf.on.create(GROUP, "v1", "widgets")
@kopf.on.update(GROUP, "v1", "widgets", field="spec.size")
async def build(spec: Any, patch: Any, **_: Any) -> dict[str, Any]:
    """Says in the status what it did."""
    patch.status["built"] = spec["size"]
    return {"size": spec["size"]}


@kopf.on.delete(GROUP, "v1", "widgets")
def clean(name: str, logger: Any, **_: Any) -> None:
    logger.info(f"widget {name} is cleaned up")
