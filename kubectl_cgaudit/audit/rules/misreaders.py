"""CGA401: programs that read the number in cpu.weight, or what is made of it, and misread it."""

import re

import polars as pl
from polars import col

from kubectl_cgaudit.audit.changes import Case
from kubectl_cgaudit.audit.rules import jvm
from kubectl_cgaudit.audit.rules.base import MEDIUM, Context, graded, hits
from kubectl_cgaudit.cgroups.weights import DEFAULT_SHARES, DEFAULT_WEIGHT

_CADVISOR = re.compile(r"(?:^|/)cadvisor$", re.ASCII)
_SHARES_OF_A_CPU = 1024
BY_IMAGE = 1.0
"""The least badness of what an image is known for: less has what a container may see of the host."""


def traits(images: list[str]) -> pl.DataFrame:
    """Return what each image runs, a row an image: `java` (a JVM that misreads) is `misreads` or `blind`; `cadvisor`."""
    faults = [jvm.old_jvm(image) for image in images]
    return pl.DataFrame(
        {
            "java": [fault[1] if fault else None for fault in faults],
            "cadvisor": list(map(is_cadvisor, images)),
        },
        schema={"java": pl.String, "cadvisor": pl.Boolean},
    )


def is_cadvisor(image: str) -> bool:
    """Return whether an image is cAdvisor's."""
    return bool(_CADVISOR.search(jvm.split(image)[0]))


def misreaders(case: Case, context: Context) -> pl.DataFrame:
    """CGA401: an old JVM counts other CPUs or knows no cgroup v2, cAdvisor's metric changes, or the host's cgroups are seen."""
    known = case.containers["image"]
    host = (context.capacity.gather(case.pods["node"]) // 1000).clip(1).gather(case.containers["pod"])
    table = case.containers.with_columns(context.images[known]).with_columns(host=host)
    blind = (col.java == "blind") & col.before_value.is_not_null() & ~col.before_v2 & col.after_v2
    was, will = (pl.min_horizontal("host", _cpus(moment).fill_null(col.host)) for moment in ("before", "after"))
    # With a CPU limit a JVM counts from the quota and leaves the shares alone (PreferContainerQuotaForCPUCount).
    misreads = (
        (col.java == "misreads")
        & col.before_value.is_not_null()
        & col.after_value.is_not_null()
        & col.after_quota.is_null()
        & (was != will)
    )
    as_asked = _cpus("after").is_not_null() & (will == pl.min_horizontal("host", _asked(col.after_shares)))
    changes = (col.before_v2 != col.after_v2) | col.before_value.ne_missing(col.after_value)
    badness = (
        pl.when(blind)
        .then(2.0)
        .when(misreads)
        .then(pl.when(as_asked).then(BY_IMAGE).otherwise(2.0))
        .when(changes & col.cadvisor)
        .then(BY_IMAGE)
        .when(changes & col.sees_cgroups)
        .then(BY_IMAGE / 2)
    )
    table = table.with_columns(size=badness, was=was, will=will)
    counted = [pl.when(col.java == "misreads").then(each) for each in ("was", "will")]
    holds, severity = col.present & col.size.is_not_null(), graded(col.size, (2.0, MEDIUM))
    return hits(table, holds, severity, col.size, (counted[0], counted[1]), ("before_value", "after_value"))


def _cpus(moment: str) -> pl.Expr:
    """`jvm.cpus` of a column: the CPUs a JVM counts, null where it takes the value for not set."""
    value, v2 = col(f"{moment}_value"), col(f"{moment}_v2")
    shares = (262142 * value - 1) // 9999 + 2
    nearest = shares // _SHARES_OF_A_CPU + (shares % _SHARES_OF_A_CPU > _SHARES_OF_A_CPU // 2).cast(pl.Int64)
    default = pl.when(v2).then(DEFAULT_WEIGHT).otherwise(DEFAULT_SHARES)
    return pl.when(value != default).then(pl.when(v2).then(nearest.clip(1)).otherwise(_asked(value)))


def _asked(shares: pl.Expr) -> pl.Expr:
    """Whole CPUs that shares stand for, rounded up."""
    return (shares + _SHARES_OF_A_CPU - 1) // _SHARES_OF_A_CPU
