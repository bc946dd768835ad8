"""Whether a quota moved: who rounds it is not always known."""

from typing import Any

import pytest

from kubectl_cgaudit.compare.diff.build import diff
from tests.diff_support import N1, N2, flat, now_of
from tests.support import V2_LINEAR, V2_QUADRATIC, cluster, container, pod, saved

OLD, NEW, CRUN, BARE = (
    f"runtimes: {{default: {each}}}" for each in ("runc 1.1.5", "runc 1.3.6", "crun 1.21", "linear")
)
SYSTEMD = "driver: systemd, "


def quotas(before: str, after: str, limit: str | None, now: str | None = None) -> list[Any]:
    """The outcomes of the quota of the pod and of its container on nodes in these states."""
    was, is_ = (pod("a", container("app", "10m", each)) for each in (limit, now or limit))
    rows = flat(diff(saved(cluster(N1, was), before, "runc=1.3.6"), now_of(cluster(N1, is_), after)))
    return [rows.get(("default/a", "a", name, "quota-us"), ("unchanged",))[0] for name in ("", "app")]


@pytest.mark.parametrize(
    ("before", "after", "limit", "expected"),
    [
        (SYSTEMD + OLD, SYSTEMD + NEW, "15m", ["unchanged", "came-true"]),
        # systemd rounds a quota up to 10m, and it is taken to be the driver where nobody says it.
        (OLD, SYSTEMD + NEW, "15m", ["unknown", "unknown"]),
        (SYSTEMD + OLD, NEW, "15m", ["unknown", "unknown"]),
        (OLD, OLD, "15m", ["unknown", "unknown"]),
        (OLD, NEW, "20m", ["unchanged", "unchanged"]),
        (OLD, NEW, None, ["unchanged", "unchanged"]),
        # A runtime without a name is taken to write what runc does; crun leaves what systemd rounded.
        (SYSTEMD + BARE, SYSTEMD + CRUN, "15m", ["unchanged", "unknown"]),
        (SYSTEMD + CRUN, SYSTEMD + BARE, "15m", ["unchanged", "unknown"]),
        (SYSTEMD + BARE, SYSTEMD + CRUN, "20m", ["unchanged", "unchanged"]),
    ],
)
def test_how_a_quota_is_rounded_is_not_taken_for_granted(
    before: str, after: str, limit: str | None, expected: list[str]
) -> None:
    rules = [f"- {{cgroup: v2, {each}}}" for each in (before, after)]
    assert quotas(rules[0], rules[1], limit) == expected


@pytest.mark.parametrize("before", [OLD, SYSTEMD + BARE])
def test_where_the_rounding_is_taken_for_granted_is_said(before: str) -> None:
    limited = cluster(
        N1, N2, pod("a", container("app", "10m", "15m")), pod("b", container("app", "10m", "20m"), on="n2")
    )
    first = saved(limited, f"- {{cgroup: v2, {before}}}", "runc=1.3.6")
    notes = diff(first, now_of(limited, f"- {{cgroup: v2, {SYSTEMD}{NEW}}}")).summary.notes
    assert notes[0] == (
        "On n1 it is taken for granted how quotas are rounded of limits that are no multiple of 10m: nobody said the cgroup "
        "driver there, or which runtime it is that has the formula. Say it for both."
    )


def test_another_limit_and_none_are_no_matter_of_rounding() -> None:
    assert quotas(V2_LINEAR, V2_QUADRATIC, "15m", "2") == ["other-cause", "other-cause"]
