"""kubectl cgaudit: which workloads gain or lose CPU priority before a cgroup v2 or runtime migration."""

__version__ = "0.1.0"
