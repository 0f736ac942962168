"""KubeSchedulerConfiguration v1: profiles with their rules, weights and arguments, and the queue's times."""

from __future__ import annotations

from muster.scheduler.profile import Profile, default_profile

__all__ = ["Profile", "default_profile"]
