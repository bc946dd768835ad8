"""The cgroup tree of every node in one setup: shares, weights, quotas, and CPU fractions when everything wants CPU.

A weight competes only with its siblings: a cgroup's fraction is the product, from the root down, of its value over the sum of
its siblings' values (`cpu.shares` on v1, `cpu.weight` on v2). All of it is column arithmetic: a row is a node, a pod or a
container. CPU is in thousandths of a CPU, quotas are in microseconds a period.

Source of the kubelet's rules: kubernetes pkg/kubelet/cm/helpers_linux.go (`ResourceConfigForPod`, `MilliCPUToShares`,
`MilliCPUToQuota`), qos_container_manager_linux.go (`setCPUCgroupConfig`), component-helpers/resource (`PodRequests`,
`PodLimits`) and pkg/kubelet/kuberuntime/kuberuntime_container_linux.go (`calculateLinuxResources`), 1.31 to 1.36.
"""

from typing import NamedTuple

import polars as pl
from polars import col

from kubectl_cgaudit.cgroups.columns import linear_weight, quadratic_weight, shares_of
from kubectl_cgaudit.cgroups.weights import MIN_SHARES

GUARANTEED, BURSTABLE, BESTEFFORT = range(3)
NONE, LINEAR, QUADRATIC = range(3)
"""What a runtime makes of shares on cgroup v2; NONE sets no weight on the host (Kata, gVisor)."""
SMALLEST_QUOTA_US = 1_000
_STEP_US_PER_SECOND = 10_000
_WHOLE_CPU = 1024


class Inputs(NamedTuple):
    """What is predicted, in any setup. Pods are sorted by node, containers by pod; amounts are null where the spec has no
    such key.
    """

    nodes: pl.DataFrame
    """`allocatable`, `capacity`, and what the kubelet shows of its slices: `shown_kubepods`, `shown_burstable`,
    `shown_besteffort`."""
    pods: pl.DataFrame
    """`node` (row in nodes), `handler`, `qos`, `request`, `spec_request`, `limit` (the pod's own), `sum_request`,
    `sum_spec_request`, `sum_limit` (over its containers, as the kubelet adds them), `overhead`, `all_limited`, `wants_cpu`,
    `partitioned` (for a management partition), `annotated` (annotations decide its numbers), `shown_value`, `shown_quota` (0 for
    none; both null where they are not shown)."""
    containers: pl.DataFrame
    """`pod` (row in pods), `request`, `limit`, `ephemeral`, `competes` (a running app or sidecar), `left_formula` (of a
    container that
    an earlier runtime created), `asked_shares` and `asked_weight` (of annotations that CRI-O reads), `unlimited` (an
    annotation asks for
    no quota), `shown_value`, `shown_quota`, and what `container_shares` adds."""


class Setups(NamedTuple):
    """The setups that occur, a row each, and what their handlers run."""

    setups: pl.DataFrame
    """`v2`, `kubelet_quadratic`, `pod_level`, `rounds_pod_quota`, `systemd`, `cfs_quota`, `period_us`, `system_slice`,
    `root_sum` (of the other top-level cgroups), `from_capacity`, `stale` (containers may be of an earlier runtime), `crio`
    (annotations
    count), `leaves_out` (pods for management partitions are not in the Burstable slice), `inner` (crun runs a container in a
    cgroup below
    its scope), `measured` (what a kubelet shows counts)."""
    runtimes: pl.DataFrame
    """`formula`, `rounds_quota`, `is_crun`, `may_be_runc`, `may_be_crun`; row `setup * handlers + handler`."""
    handlers: int


class Moment(NamedTuple):
    """The trees of all nodes, row by row beside the inputs."""

    nodes: pl.DataFrame
    """The setup's columns, `kubepods_shares`, `kubepods` and `burstable` (values), `burstable_shares`, `besteffort`,
    `kubepods_share`, `system_share`, and for each QoS class `total_<n>` (what its pods compete with) and `slice_<n>`
    (fraction of the
    node's CPU)."""
    pods: pl.DataFrame
    """`shares`, `value`, `quota`, `predicted_quota` (whatever is shown), `share` (of the node's CPU), `formula`, `measured`."""
    containers: pl.DataFrame
    """`shares`, `value` (null if the runtime sets none), `limited` (the limit that counts), `quota`, `pod_quota` and
    `quota_in_force` (as they
    are predicted; in force is the smaller of its own, without crun's outer cgroup, and its pod's), `fails` (the kernel
    refuses its
    quota: runc#4982), `in_pod` (fraction of the pod's CPU, null if it does not compete), `share`, `measured`."""


def competing(inputs: Inputs) -> pl.Series:
    """Return whether each pod has a container that competes for CPU."""
    having = inputs.containers.filter(col.competes)["pod"].unique()
    return pl.int_range(len(inputs.pods), eager=True).is_in(having.implode())


def predict(inputs: Inputs, setups: Setups, setup_of_node: pl.Series) -> Moment:
    """Predict every node in the setup (row of `setups`) that `setup_of_node` gives for it."""
    of_node = setups.setups[setup_of_node]
    quadratic = bool(of_node["kubelet_quadratic"].any())
    nodes = inputs.nodes.hstack(of_node).with_columns(
        kubepods_shares=shares_of(pl.when("from_capacity").then("capacity").otherwise("allocatable"))
    )
    pods = _pods(inputs, setups, setup_of_node, nodes, quadratic=quadratic)
    nodes = _slices(nodes, inputs.pods, pods, quadratic=quadratic)
    pods = _pod_shares(inputs.pods, pods, nodes)
    return Moment(nodes, pods, _containers(inputs, pods))


def _kubelet_value(shares: pl.Expr, *, quadratic: bool) -> pl.Expr:
    """What the kubelet writes for shares: themselves on v1, on v2 its formula's weight."""
    weight = linear_weight(shares)
    if quadratic:
        weight = pl.when("kubelet_quadratic").then(quadratic_weight(shares)).otherwise(weight)
    return pl.when("v2").then(weight).otherwise(shares)


def _pods(
    inputs: Inputs, setups: Setups, setup_of_node: pl.Series, nodes: pl.DataFrame, *, quadratic: bool
) -> pl.DataFrame:
    """Shares, value and quota of each pod, with the columns of its setup and its handler's runtime."""
    node = inputs.pods["node"]
    runtime = setup_of_node.gather(node) * setups.handlers + inputs.pods["handler"]
    table = inputs.pods.hstack(nodes.select(*_POD_PARAMETERS)[node]).hstack(setups.runtimes[runtime])
    own_request = col.pod_level & col.request.is_not_null()
    limit = pl.when(col.pod_level & (col.limit > 0)).then("limit")
    counted = (col.qos != BESTEFFORT) & ((col.qos == GUARANTEED) | col.all_limited | limit.is_not_null())
    total = pl.coalesce(limit, pl.when(col.sum_limit > 0).then("sum_limit"))
    # CRI-O takes the pod's quota away with that of the first container.
    unlimited = col.crio & pl.when("pod_level").then("unlimited_on").otherwise("unlimited_off")
    return (
        table.select(
            *_POD_PARAMETERS,
            "formula",
            "rounds_quota",
            "is_crun",
            "may_be_runc",
            "may_be_crun",
            "limit",
            requested=pl.when(own_request).then("request").otherwise("sum_request") + col.overhead,
            spec_requested=pl.when(col.pod_level & col.spec_request.is_not_null())
            .then("spec_request")
            .otherwise("sum_spec_request")
            + col.overhead,
            limited=pl.when(counted & ~unlimited).then(total + col.overhead),
            left_out=col.leaves_out & col.partitioned,
            counts_shown=col.measured,
            shown_value=pl.when("measured").then("shown_value"),
            shown_quota=pl.when("measured").then("shown_quota"),
        )
        .with_columns(
            shares=pl.when(inputs.pods["qos"] == BESTEFFORT).then(MIN_SHARES).otherwise(shares_of(col.requested)),
            predicted_quota=pl.when(col.cfs_quota & col.limited.is_not_null()).then(
                pl.when(col.systemd & col.rounds_pod_quota)
                .then(_rounded_up(_quota_of(col.limited)))
                .otherwise(_quota_of(col.limited))
            ),
            counted=pl.when("left_out").then(0).otherwise("spec_requested"),
        )
        .with_columns(
            value=pl.coalesce("shown_value", _kubelet_value(col.shares, quadratic=quadratic)),
            quota=_shown_or("predicted_quota"),
            measured=col.shown_value.is_not_null(),
        )
    )


_POD_PARAMETERS = (
    "v2",
    "kubelet_quadratic",
    "pod_level",
    "rounds_pod_quota",
    "systemd",
    "cfs_quota",
    "period_us",
    "stale",
    "crio",
    "leaves_out",
    "inner",
    "measured",
)


def _shown_or(predicted: str) -> pl.Expr:
    """The quota that is shown, else the predicted one; null for none."""
    shown = pl.when(col.shown_quota > 0).then("shown_quota")
    return pl.when(col.shown_quota.is_null()).then(predicted).otherwise(shown)


def _slices(nodes: pl.DataFrame, given: pl.DataFrame, pods: pl.DataFrame, *, quadratic: bool) -> pl.DataFrame:
    """The nodes with what competes at the root and inside kubepods, and the fraction of each slice."""
    qos, hungry = col.qos, col.wants_cpu
    sums = (
        given.select("node", "qos", "wants_cpu")
        .hstack(pods.select("value", "counted"))
        .group_by("node")
        .agg(
            *[pl.when(hungry & (qos == each)).then("value").sum().alias(f"total_{each}") for each in range(3)],
            asked=pl.when(qos == BURSTABLE).then("counted").sum(),
        )
    )
    zeros = {"total_0": 0, "total_1": 0, "total_2": 0, "asked": 0}
    nodes = (
        nodes.with_row_index("node")
        .with_columns(col.node.cast(pl.Int32))
        .join(sums, on="node", how="left", maintain_order="left")
        .with_columns(col(name).fill_null(value) for name, value in zeros.items())
        .with_columns(
            burstable_shares=shares_of(col.asked),
            kubepods=_slice("shown_kubepods", col.kubepods_shares, quadratic=quadratic),
        )
        .with_columns(
            burstable=_slice("shown_burstable", col.burstable_shares, quadratic=quadratic),
            besteffort=_slice("shown_besteffort", pl.lit(MIN_SHARES), quadratic=quadratic),
            root_total=col.kubepods + col.system_slice + col.root_sum,
        )
        .with_columns(
            kubepods_share=col.kubepods / col.root_total,
            system_share=col.system_slice / col.root_total,
            pods_to_system=col.kubepods / col.system_slice,
        )
    )
    values = (
        col.total_0,
        pl.when(col.total_1 > 0).then("burstable").otherwise(0),
        pl.when(col.total_2 > 0).then("besteffort").otherwise(0),
    )
    total = values[0] + values[1] + values[2]
    return nodes.with_columns(
        pl.when(total > 0).then(col.kubepods_share * value / total).otherwise(0.0).alias(f"slice_{each}")
        for each, value in enumerate(values)
    )


def _slice(shown: str, shares: pl.Expr, *, quadratic: bool) -> pl.Expr:
    """The value of a slice: what is shown of it where that counts, else what the kubelet writes for its shares."""
    return pl.coalesce(pl.when("measured").then(shown), _kubelet_value(shares, quadratic=quadratic))


def _pod_shares(given: pl.DataFrame, pods: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """The pods with their fraction of the node's CPU."""
    of_node = nodes.select(*(f"{what}_{each}" for what in ("slice", "total") for each in range(3)))[given["node"]]
    table = given.select("qos", "wants_cpu").hstack(pods.select("value")).hstack(of_node)
    slice_, total = (
        pl.when(qos == GUARANTEED).then(f"{what}_0").when(qos == BURSTABLE).then(f"{what}_1").otherwise(f"{what}_2")
        for what in ("slice", "total")
        for qos in (col.qos,)
    )
    share = pl.when("wants_cpu").then(slice_ * col.value / total).otherwise(0.0)
    return pods.hstack(table.select(share=share))


def _containers(inputs: Inputs, pods: pl.DataFrame) -> pl.DataFrame:
    """Shares, value, quota and fractions of each container."""
    of_pod = pods.select(
        *(name for name in _POD_PARAMETERS if name not in ("leaves_out", "measured")),
        "formula",
        "rounds_quota",
        "is_crun",
        "may_be_runc",
        "may_be_crun",
        pod_limit="limit",
        pod_share="share",
        pod_quota="predicted_quota",
        counts_shown=col.counts_shown,
    )[inputs.containers["pod"]]
    limit = pl.coalesce(
        pl.when(col.limit > 0).then("limit"), pl.when(col.pod_level & (col.pod_limit > 0)).then("pod_limit")
    )
    # An annotation's weight stands in the cgroup that crun makes below the scope, and is not seen in the scope.
    has_inner = col.inner & col.v2 & col.systemd & col.may_be_crun
    asked_weight = pl.when(col.crio & ~has_inner).then("asked_weight")
    weight = pl.coalesce(asked_weight, pl.when(col.formula == QUADRATIC).then("quadratic").otherwise("linear"))
    shown_value = pl.when(col.counts_shown & (col.formula != NONE)).then("shown_value")
    value = pl.coalesce(shown_value, pl.when("v2").then(weight).otherwise("shares"))
    # What created a container decides how its quota was written: a stale one has that of the release with its formula.
    stale = col.stale & (col.left_formula >= LINEAR)
    rounds = (
        pl.when(stale).then(col.is_crun | ((col.left_formula == QUADRATIC) & col.may_be_runc)).otherwise("rounds_quota")
    )
    unlimited = col.crio & pl.when("pod_level").then("unlimited_on").otherwise("unlimited_off")
    limited = col.limited.is_not_null() & (col.formula != NONE) & col.cfs_quota & ~unlimited
    rounded = limited & col.systemd & rounds
    raw_last = col.is_crun & (~col.v2 | ~col.inner)
    fails = ~col.v2 & col.systemd & col.rounds_quota & col.may_be_runc & ~col.ephemeral
    level = pl.when("pod_level")
    return (
        inputs.containers.hstack(of_pod)
        .with_columns(
            shares=pl.coalesce(pl.when("crio").then("asked_shares"), level.then("shares_on").otherwise("shares_off")),
            quadratic=pl.coalesce(
                pl.when("crio").then("quadratic_asked"), level.then("quadratic_on").otherwise("quadratic_off")
            ),
            limited=limit,
        )
        .with_columns(linear=linear_weight(col.shares), raw=_quota_of(col.limited))
        .with_columns(stepped=_rounded_up(col.raw))
        .select(
            "pod",
            "competes",
            "pod_share",
            "formula",
            "shares",
            "limited",
            "pod_quota",
            value=pl.when(col.formula != NONE).then(value),
            measured=shown_value.is_not_null(),
            shown_quota=pl.when(col.counts_shown & (col.formula != NONE)).then("shown_quota"),
            own=pl.when(limited).then(pl.when(rounded & ~raw_last).then("stepped").otherwise("raw")),
            inner=pl.when(limited).then(pl.when(rounded & ~col.is_crun).then("stepped").otherwise("raw")),
            may_fail=fails,
        )
        .with_columns(
            quota=_shown_or("own"),
            quota_in_force=pl.min_horizontal("inner", pl.when(col.inner.is_not_null()).then("pod_quota")),
            fails=(col.may_fail & (col.own > col.pod_quota)).fill_null(value=False),
        )
        .with_columns(total=pl.when("competes").then("value").sum().over("pod"))
        .with_columns(in_pod=pl.when(col.competes).then(col.value / col.total))
        .with_columns(share=col.pod_share * col.in_pod)
    )


def _quota_of(limit: pl.Expr) -> pl.Expr:
    """Quota of a limit: `limit * period / 1000`, at least 1000 us. Source: `MilliCPUToQuota`."""
    return (limit * col.period_us // 1000).clip(SMALLEST_QUOTA_US)


def _rounded_up(quota: pl.Expr) -> pl.Expr:
    """The quota as systemd stores it: rounded up to its smallest step, 1% of a CPU.

    Source: opencontainers/cgroups systemd/v2.go, `addCPUQuota`, since v0.0.2.
    """
    per_second = quota * 1_000_000 // col.period_us
    steps = (per_second + _STEP_US_PER_SECOND - 1) // _STEP_US_PER_SECOND
    return steps * _STEP_US_PER_SECOND * col.period_us // 1_000_000


def container_shares(containers: pl.DataFrame, pods: pl.DataFrame) -> pl.DataFrame:
    """Add what does not depend on the setup: a container's shares where the pod's own limit counts (`_on`) and where not
    (`_off`),
    the quadratic weight of both and of what an annotation asks for, and whether its quota is taken away.
    """
    limit = pl.when(col.limit > 0).then("limit")
    pod_limit = pods["limit"].gather(containers["pod"])
    of_limit = limit.fill_null(0)
    return (
        containers.with_columns(
            shares_on=shares_of(pl.coalesce("request", limit, pl.when(pod_limit > 0).then(pod_limit), 0)),
            shares_off=shares_of(pl.coalesce("request", of_limit)),
        )
        .with_columns(
            quadratic_on=quadratic_weight(col.shares_on),
            quadratic_off=quadratic_weight(col.shares_off),
            quadratic_asked=quadratic_weight(col.asked_shares),
        )
        .with_columns(
            # CRI-O takes away the quota of whole CPUs only.
            unlimited_on=col.unlimited & (col.shares_on % _WHOLE_CPU == 0),
            unlimited_off=col.unlimited & (col.shares_off % _WHOLE_CPU == 0),
        )
    )
