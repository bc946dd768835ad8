"""Stage 1: read nodes, pods and owners, from a cluster or from files."""
