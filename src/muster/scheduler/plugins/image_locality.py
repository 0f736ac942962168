"""ImageLocality: scores nodes by the size of the pod's images on them, times the share of nodes with the image."""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.known_images import image_name
from muster.scheduler.framework.plugin import MAX_SCORE, DependsOn, Plugin
from muster.scheduler.framework.shape import Shape

# kube-scheduler's minThreshold and maxContainerThreshold.
_MIB = 1024 * 1024
_MIN_SIZE = 23 * _MIB
_MAX_SIZE_EACH = 1000 * _MIB


class ImageLocality(Plugin):
    name = "ImageLocality"
    weight = 1
    score_depends_on = DependsOn.NODE
    watches = frozenset(("images",))

    def score_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return any(cluster.image_sizes(image).any() for image in _images(shape))

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        images = _images(shape)
        total = np.zeros(cluster.alive[slots].shape, dtype=np.int64)
        for image in images:
            sizes = cluster.image_sizes(image)
            spread = np.count_nonzero(sizes) / max(1, cluster.count)
            total += (sizes[slots] * spread).astype(np.int64)
        most = _MAX_SIZE_EACH * len(images)
        return (np.clip(total, _MIN_SIZE, most) - _MIN_SIZE) * MAX_SCORE // (most - _MIN_SIZE)


def _images(shape: Shape) -> list[str]:
    spec = shape.pod.spec
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    volumes = (volume.image.reference for volume in spec.volumes or () if volume.image is not None)
    return shape.memo("images", lambda: [image_name(name) for name in (*(c.image for c in containers), *volumes)])
