"""One request to one resource, after routing: what every verb works on."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.api.errors import FieldError, invalid
from muster.server.codec import View
from muster.server.media import PLAIN, Form
from muster.server.paths import ResourcePath
from muster.server.request import Request, User
from muster.server.resources.kind import AdmissionForm, Kind
from muster.server.store.records import Key


@dataclass(slots=True)
class Call:
    """A verb on a kind in a version, in a namespace, perhaps on one object and one of its subresources."""

    request: Request
    verb: str
    kind: Kind
    view: View
    path: ResourcePath
    form: Form = PLAIN
    warnings: list[str] = field(default_factory=list[str])
    dry_run: bool = False
    applied: bool = False  # server-side apply has settled who owns what
    admission_form: AdmissionForm | None = None

    @property
    def namespace(self) -> str:
        return self.path.namespace

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def key(self) -> Key:
        return (self.path.namespace, self.path.name)

    @property
    def user(self) -> User:
        return self.request.user


def check_dry_run(request: Request) -> bool:
    """Whether nothing is to be stored; 422 for a value other than All."""
    values = request.query.get("dryRun", ())
    for value in values:
        if value not in ("All", ""):
            wrong = FieldError("FieldValueNotSupported", "dryRun", value, 'supported values: "All"')
            raise invalid("meta.k8s.io", "CreateOptions", "", [wrong])
    return "All" in values
