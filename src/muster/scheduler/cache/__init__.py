"""What runs where, as arrays that events keep current: nodes, pods on nodes, pod counts by label, volumes."""
