"""The objects that run the audit inside a cluster, on a schedule."""
