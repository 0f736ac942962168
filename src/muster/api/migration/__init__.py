"""Older manifests into current ones: the drafts and releases that named gangs differently.

Known are the first draft (`scheduling/v1alpha1` with `gangMode`), Kubernetes 1.35 (`v1alpha1` with `podGroups` and the
pods' `workloadRef`), 1.36 (`v1alpha2`), and the flat `podGroupTemplateRef` that some articles show. Input objects are
not changed. Everything that happened, and everything that has no equivalent, is told in notes.
"""

from __future__ import annotations

from muster.api.migration.notes import Note
from muster.api.migration.road import Migrated, migrate

__all__ = ["Migrated", "Note", "migrate"]
