"""Manifests of earlier releases and of other gang schedulers into current ones.

Known are the first draft (`scheduling/v1alpha1` with `gangMode`), Kubernetes 1.35 (`v1alpha1` with `podGroups` and the
pods' `workloadRef`), 1.36 (`v1alpha2`), the flat `podGroupTemplateRef` that some articles show, Jobs and PodGroups of
Volcano, and PodGroups of the coscheduling plugin. Input objects are not changed. Everything that happened, and
everything that has no equivalent, is told in notes.
"""

from __future__ import annotations

from muster.api.migration.notes import Note
from muster.api.migration.road import Migrated, migrate

__all__ = ["Migrated", "Note", "migrate"]
