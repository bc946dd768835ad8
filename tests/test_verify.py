"""`verify` where lists and kubelets do not speak of the same moment, or of the same tree."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups.weights import linear_inverse
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers
from kubectl_cgaudit.compare.verify import Difference, Verification, verify
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.report import verify as report
from kubectl_cgaudit.report.screen import PLAIN
from tests.support import cluster, container, golden_json, half_restarted, node, other, pod, recorded, with_kubelets

SLICE = "/kubepods.slice/kubepods-burstable.slice"
KATA = {"kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}


def running(name: str, **more: Any) -> dict[str, Any]:
    """A pod with one running container that asks for 1 CPU."""
    raw = pod(name, container("app", "1"), **more)
    started = {"running": {"startedAt": "2026-11-01T00:00:00Z"}}
    raw["status"]["containerStatuses"] = [{"name": "app", "containerID": f"containerd://{name}", "state": started}]
    return raw


def shown(*pods: str, burstable: int, containers: bool = True) -> dict[str, int]:
    """What the kubelet of a 4 CPU node shows of pods with one container of weight 39 each."""
    rows = {"/kubepods.slice": 157, SLICE: burstable, "/kubepods.slice/kubepods-besteffort.slice": 1}
    for name in pods:
        own = f"{SLICE}/kubepods-burstable-poduid_{name}.slice"
        rows |= {own: 39} | ({f"{own}/cri-containerd-{name}.scope": 39} if containers else {})
    return {path: linear_inverse(weight) for path, weight in rows.items()}


def verified(objects: Cluster, shares: dict[str, int], rules: str = "", **config: Any) -> Verification:
    known = (with_kubelets(recorded()).kubelets or {})["worker-a"].config
    assert known is not None
    answers = KubeletAnswers("n1", "v2", False, shares, replace(known, **config), ())
    return verify(with_answers(objects, {"n1": answers}), states.parse(rules, "test") if rules else ())


def differing(found: Verification) -> list[str]:
    return [each.cgroup for each in found.differences]


def test_a_slice_is_the_sum_of_its_pods() -> None:
    both = cluster(node(), running("a"), running("b"))
    assert differing(verified(both, shown("a", "b", burstable=79))) == []
    assert differing(verified(both, shown("a", "b", burstable=80))) == [SLICE]


@pytest.mark.parametrize(
    ("listed", "seen"), [(("a",), ("a", "b")), (("a", "b"), ("a",))], ids=["ended since", "not started yet"]
)
def test_pods_that_come_and_go_are_no_difference_of_their_slice(listed: tuple[str, ...], seen: tuple[str, ...]) -> None:
    found = verified(cluster(node(), *map(running, listed)), shown(*seen, burstable=60))
    assert differing(found) == []
    assert found.unmeasured >= 1


@pytest.mark.parametrize(
    ("where", "burstable", "differs", "late"),
    [
        ("n1", 38, True, False),
        ("n1", 39, False, False),
        ("n1", 40, False, True),
        ("n1", 79, False, True),
        ("n1", 80, True, False),
        ("n2", 79, True, False),
    ],
)
def test_a_slice_may_hold_pods_that_ended_within_the_last_minute(
    where: str, burstable: int, differs: bool, late: bool
) -> None:
    ended = pod("b", container("app", "1"), on=where)
    ended["status"]["phase"] = "Succeeded"
    found = verified(cluster(node(), running("a"), ended), shown("a", burstable=burstable))
    assert (differing(found), found.late) == ([SLICE] * differs, ("n1",) * late)
    assert found.compared == (4 if late else 5)
    said = (
        "The Burstable slice of n1 is not verified: it may still hold pods that have ended, as kubelets write it anew once a "
        "minute. Verify again.\n"
    )
    assert (said in report.as_text(found, replace(PLAIN, width=400))) == late


def test_a_resize_is_no_difference_of_the_slice_that_it_is_in() -> None:
    resized = running("a")
    resized["status"]["conditions"] = [{"type": "PodResizeInProgress", "status": "True"}]
    assert differing(verified(cluster(node(), resized, running("b")), shown("a", "b", burstable=43))) == []


def test_what_sets_no_weight_on_the_host_is_not_missed_there() -> None:
    pods = [running("a"), *(running(f"k{n}", runtimeClassName="kata") for n in range(3))]
    shares = shown("a", burstable=157) | shown("k0", "k1", "k2", burstable=157, containers=False)
    found = verified(cluster(node(), KATA, *pods), shares)
    assert (differing(found), found.few_containers, found.unmeasured) == ([], {}, 0)


def test_another_driver_is_named_as_what_it_is() -> None:
    found = verified(cluster(node(), running("a")), shown("a", burstable=39), "- {driver: cgroupfs}")
    assert found.contradicted == {"n1": "another cgroup driver is predicted, its cgroups are named as by systemd"}
    assert (found.nodes, found.few_containers) == ((), {})


def test_a_node_without_a_kubepods_tree_is_not_asked_again() -> None:
    found = verified(cluster(node(), running("a")), {"/": 1024}, cgroups_per_qos=False)
    assert found.not_compared == {"n1": ("its kubelet makes no kubepods tree (cgroupsPerQOS is false)",)}
    assert found.few_containers == {}


def test_verify_finds_no_difference_on_any_recorded_cgroup() -> None:
    result = verify(with_kubelets(recorded()), ())
    assert (result.nodes, result.compared, result.unmeasured) == (("worker-a", "worker-b", "worker-c"), 81, 0)
    assert result.differences == ()
    levels = ("kubepods", "qos", "pod", "container")
    crun = 4
    """crun runs a container in a cgroup below its scope, and both carry the weight."""
    assert result.compared == sum(row["level"] in levels for row in golden_json("cgroups.json")) + crun
    assert result.quotas == 32


def test_verify_finds_every_container_a_wrong_states_file_speaks_of() -> None:
    rules = states.parse("- {match: {name: worker-b}, runtimes: {default: runc 1.3.6}}", "s")
    differences = verify(with_kubelets(recorded()), rules).differences
    assert {each.node for each in differences} == {"worker-b"}
    assert {each.level for each in differences} == {"container"}
    default = [
        (each.name, c.name)
        for each in recorded().pods
        if each.node == "worker-b" and each.runtime_class is None
        for c in each.containers
        if c.presence == "running" and (c.request_milli or 0) > 2
    ]
    weights = [each for each in differences if each.what == "value"]
    assert sorted((each.pod, each.container) for each in weights) == sorted(default)
    assert {each.cause for each in weights} == {"formula"}
    (quota,) = [each for each in differences if each.what == "quota"]
    assert (quota.container, quota.predicted, quota.measured, quota.cause) == ("exporter", (3000,), 2500, "rounding")
    redis = next(each for each in differences if each.container == "redis")
    assert (redis.predicted, redis.measured) == ((59,), 20)


def test_verify_names_the_containers_that_still_carry_the_old_formula() -> None:
    differences = verify(half_restarted(), ()).differences
    assert [
        (each.pod, each.container, each.predicted, each.measured) for each in differences if each.level == "container"
    ] == [("p3", "app", (59,), 20), ("p3", "side", (11,), 2), ("p4", "app", (59,), 20), ("p4", "side", (11,), 2)]


def test_a_pod_of_the_same_name_in_resize_hides_no_difference() -> None:
    objects = half_restarted()
    twin = other(next(p for p in objects.pods if p.name == "p3"), namespace="other", resizing=True, containers=())
    moved = msgspec.structs.replace(twin, uid="twin")
    result = verify(msgspec.structs.replace(objects, pods=(*objects.pods, moved)), ())
    assert {"p3", "p4"} <= {each.pod for each in result.differences}


def test_verify_names_what_it_could_not_compare() -> None:
    objects = half_restarted()
    assert objects.kubelets is not None
    problem = "shows shares from the spec (kubelet_metrics_provider cri): they prove nothing"
    answers = msgspec.structs.replace(objects.kubelets["n1"], stats_from_spec=True, problems=(problem,))
    result = verify(msgspec.structs.replace(objects, kubelets={"n1": answers}), ())
    assert (result.nodes, result.compared, result.not_compared) == ((), 0, {"n1": (problem,)})
    assert report.as_text(result) == (
        "Nothing could be compared.\nNot compared: n1: shows shares from the spec (kubelet_metrics_provider cri):\n"
        "  they prove nothing.\n"
    )


@pytest.mark.parametrize(("gone", "few"), [(4, {}), (5, {"n1": (3, 8)})])
def test_half_of_the_containers_is_not_few(gone: int, few: dict[str, tuple[int, int]]) -> None:
    objects = half_restarted()
    answers = (objects.kubelets or {})["n1"]
    left = dict(
        sorted(answers.shares.items(), key=lambda each: "cri-containerd" in each[0])[: len(answers.shares) - gone]
    )
    partly = with_answers(objects, {"n1": msgspec.structs.replace(answers, shares=left)})
    assert verify(partly, ()).few_containers == few


WHOLE = Verification(("n1",), 7, 0, (), {}, {}, {})
OF_POD = Difference("n1", "pod", "shop", "web", None, "/kubepods/burstable/podx", (39,), None)
SLICES = "Kubelets do not show system.slice unless they are told to: its weight is not verified."
ENDED = "ended since, or not created yet"
OTHERS = "The others are not verified: ask again, and see whether /metrics/cadvisor has their rows."


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (replace(WHOLE, compared=1), ["1 cgroup of 1 node compared with their kubelets: no difference.", SLICES]),
        (
            replace(WHOLE, unmeasured=1),
            [
                "7 cgroups of 1 node compared with their kubelets: no difference.",
                f"1 predicted cgroup was not shown: {ENDED}.",
                SLICES,
            ],
        ),
        (
            replace(WHOLE, nodes=("n1", "n2"), unmeasured=2),
            [
                "7 cgroups of 2 nodes compared with their kubelets: no difference.",
                f"2 predicted cgroups were not shown: {ENDED}.",
                SLICES,
            ],
        ),
        (
            replace(WHOLE, unmeasured=2, few_containers={"n1": (1, 2), "n2": (0, 7)}),
            [
                "7 cgroups of 1 node compared with their kubelets: no difference in these.",
                "2 predicted cgroups were not shown.",
                SLICES,
                f"n1, n2: their kubelets showed 1 of 9 running containers. {OTHERS}",
            ],
        ),
        (
            replace(WHOLE, few_containers={"n1": (0, 1)}),
            [
                "7 cgroups of 1 node compared with their kubelets: no difference in these.",
                SLICES,
                f"n1: its kubelet showed 0 of 1 running container. {OTHERS}",
            ],
        ),
        (
            replace(WHOLE, few_containers=dict.fromkeys("abcdef", (0, 2))),
            [
                "7 cgroups of 1 node compared with their kubelets: no difference in these.",
                SLICES,
                f"a, b, c, d, e and 1 more: their kubelets showed 0 of 12 running containers. {OTHERS}",
            ],
        ),
        (
            replace(WHOLE, nodes=(), contradicted={"n1": "another"}, not_compared={"n2": ("timed out", "odd")}),
            [
                "Nothing could be compared.",
                "n1: another. Nothing else of it is compared; correct --states.",
                "Not compared: n2: timed out; odd.",
            ],
        ),
        (
            replace(WHOLE, nodes=(), contradicted={**dict.fromkeys("abcdef", "another"), "g": "odd"}),
            [
                "Nothing could be compared.",
                "a, b, c, d, e and 1 more: another. Nothing else of them is compared; correct --states.",
                "g: odd. Nothing else of it is compared; correct --states.",
            ],
        ),
        (
            replace(WHOLE, nodes=(), not_compared={**dict.fromkeys("abcdef", ("timed out",)), "g": ("odd",)}),
            [
                "Nothing could be compared.",
                "Not compared: a, b, c, d, e and 1 more: timed out.",
                "Not compared: g: odd.",
            ],
        ),
    ],
)
def test_what_was_compared_and_what_was_not_in_words(found: Verification, lines: list[str]) -> None:
    assert report.as_text(found, replace(PLAIN, width=200)).splitlines() == lines


def test_the_rows_of_what_differs_name_whose_cgroup_it_is() -> None:
    of_slice = replace(OF_POD, level="qos", namespace=None, pod=None, cgroup="/kubepods/burstable", measured=2)
    both = replace(OF_POD, level="container", container="app", predicted=(39, 100), measured=17)
    text = report.as_text(replace(WHOLE, differences=(OF_POD, of_slice, both)), replace(PLAIN, width=200))
    said, rows, meaning = text.split("\n\n")
    unknown = "not known: another program may have written it"
    assert text.startswith("7 cgroups of 1 node compared with their kubelets: 3 differences.\n")
    assert said.splitlines()[1:] == [SLICES]
    assert rows.splitlines() == [
        "NODE  LEVEL      CGROUP OF            PREDICTED  MEASURED   CAUSE",
        f"n1    pod        shop/web             39         no weight  {unknown}",
        f"n1    qos        /kubepods/burstable  39         2          {unknown}",
        f"n1    container  shop/web/app         39 or 100  17         {unknown}",
    ]
    assert " ".join(meaning.split()).endswith("Numbers without a unit are cpu.weight on cgroup v2, cpu.shares on v1.")
    one = report.as_text(replace(WHOLE, differences=(OF_POD,)))
    assert one.startswith("7 cgroups of 1 node compared with their kubelets: 1 difference.\n")


@pytest.mark.parametrize(("old", "differ"), [(("c",), {"c"}), (("a", "b"), {"c"})])
def test_containers_of_one_runtime_agree_with_one_formula_and_not_each_with_its_own(
    old: tuple[str, ...], differ: set[str]
) -> None:
    """What the runtime is, nobody said: either formula was good enough for each container by itself."""
    shares = shown("a", "b", "c", burstable=118)
    for name in {"a", "b", "c"} - {*old}:
        shares[f"{SLICE}/kubepods-burstable-poduid_{name}.slice/cri-containerd-{name}.scope"] = linear_inverse(100)
    found = verified(cluster(node(), *map(running, "abc")), shares)
    assert {each.pod for each in found.differences} == differ
    most = (39,) if len(old) == 2 else (100,)
    assert {each.predicted for each in found.differences} == {most}
