"""A plugin of your own: pods with the label `quiet` stay off nodes with more than 50 pods, and all prefer empty nodes.

Name this file in the configuration (docs/plugins.md):

    pluginConfig:
    - name: Muster
      args:
        pluginFiles: [/etc/muster/plugins/quiet_nodes.py]
"""

import numpy as np

from muster.scheduler.framework.plugin import DependsOn, Plugin

MOST_PODS = 50
PODS = 2  # the row of `cluster.used` that counts pods


class QuietNodes(Plugin):
    name = "QuietNodes"
    weight = 2
    filter_depends_on = score_depends_on = DependsOn.USAGE
    message = "node(s) were too busy"
    pod_labels = frozenset({"quiet"})

    def filter(self, shape, cluster, slots):
        quiet = "quiet" in (shape.pod.metadata.labels or {})
        return (cluster.used[PODS][slots] <= MOST_PODS) | (not quiet)

    def score(self, shape, cluster, slots):
        return np.maximum(0, 100 - cluster.used[PODS][slots])
