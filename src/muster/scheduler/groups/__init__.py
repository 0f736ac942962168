"""PodGroups and CompositePodGroups as trees, with counters that one pod changes in O(depth)."""
