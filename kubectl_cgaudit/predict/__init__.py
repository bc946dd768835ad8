"""Stage 3: the cgroup tree of a node in a given state."""
