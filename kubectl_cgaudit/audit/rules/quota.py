"""CGA301, CGA302: limits that may keep a container from starting, or that are not what the spec says."""

import polars as pl
from polars import col

from kubectl_cgaudit.audit.changes import Case
from kubectl_cgaudit.audit.rules.base import CRITICAL, LOW, Context, hits


def failing_starts(case: Case, _context: Context) -> pl.DataFrame:
    """CGA301: the kernel may refuse a container's quota, as it is larger than its pod's (runc#4982).

    Init containers fail the same way. What is measured second is the container's quota, and its pod's.
    """
    badness = pl.when("before_fails").then(0.0).otherwise(1.0)
    limits, quotas = ("after_limited", "after_limited"), ("after_quota", "after_pod_quota")
    return hits(case.containers, col.after_fails, CRITICAL, badness, limits, quotas, today=col.before_fails)


def changed_limits(case: Case, _context: Context) -> pl.DataFrame:
    """CGA302: the quota in force is not the limit in the spec."""
    quota, limit, period = col.after_quota_in_force, col.after_limited, col.after_period_us
    # A quota is whole microseconds: what is less than one is no change.
    changed = ~col.ephemeral & ~col.after_fails & ((quota * 1000 - limit * period).abs() >= 1000)
    today = (col.before_quota_in_force == quota).fill_null(value=False)
    size = (quota * 1000 / period - limit) / limit
    badness = pl.when(today).then(0.0).otherwise(1000.0) + size
    quotas = ("before_quota_in_force", "after_quota_in_force")
    return hits(case.containers, changed, LOW, badness, ("after_limited", "after_limited"), quotas, today=today)
