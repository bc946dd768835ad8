"""What settles which runtime a handler runs, and what its running containers carry."""

from typing import Any

import msgspec
import pytest

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.weights import linear_inverse
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers
from kubectl_cgaudit.detect.handlers import handler
from tests.evidence_support import settled, told
from tests.support import (
    audited,
    cluster,
    container,
    golden_json,
    half_restarted,
    node,
    of_rule,
    pod,
    recorded,
    viewed,
    with_kubelets,
)


def test_containers_that_were_not_restarted_are_found_named_and_predicted_as_they_are() -> None:
    objects = half_restarted()
    (comparison,) = viewed(objects, "", "runtime")
    assert told(comparison.state)["default"] == ("quadratic", "certain")
    assert [(each.pod, each.container, each.weight) for each in comparison.state.leftovers] == [
        ("p3", "app", 20),
        ("p3", "side", 2),
        ("p4", "app", 20),
        ("p4", "side", 2),
    ]
    weights = {tree.pod.name: [c.weight for _, c in tree.containers] for tree in comparison.cases[0].before.pods()}
    assert weights == {"p1": [59, 11], "p2": [59, 11], "p3": [20, 2], "p4": [20, 2]}
    after = {tree.pod.name: [c.weight for _, c in tree.containers] for tree in comparison.cases[0].after.pods()}
    assert set(map(tuple, after.values())) == {(59, 11)}
    (finding,) = of_rule(audited(objects, "", "runtime"), "CGA103").values()
    assert finding.severity == "medium"
    assert finding.detail["handlers"] == {"default": "quadratic"}
    stale = [(each["pod"], each["container"], each["weight"], each["formula"]) for each in finding.detail["stale"]]
    assert stale == [
        ("p3", "app", 20, "linear"),
        ("p3", "side", 2, "linear"),
        ("p4", "app", 20, "linear"),
        ("p4", "side", 2, "linear"),
    ]


def test_204_of_what_is_left_over_is_not_said_of_the_pods_that_were_restarted() -> None:
    """p1 and p2 have 59 : 11 now and after: with what gives p3 its 20 : 2 back their sidecars would lose CPU."""
    objects = half_restarted(owner=("StatefulSet", "w"))
    (finding,) = of_rule(audited(objects, "", "runtime"), "CGA204").values()
    assert (finding.where.pod, finding.where.container) == ("p3", "app")
    assert (finding.where.pods_hit, finding.where.pods) == (2, 4)
    share = finding.measures[0]
    assert (share.name, share.before, share.after) == ("share of the pod", 0.909090909, 0.842857143)
    alone = of_rule(audited(half_restarted(), "", "runtime"), "CGA204")
    assert {name: each.where.pods_hit for name, each in alone.items()} == {"default/p3": 1, "default/p4": 1}


def worker_b(objects: Cluster, **changes: object) -> Cluster:
    """The recorded cluster with another worker-b."""
    nodes = tuple(msgspec.structs.replace(n, **changes) if n.name == "worker-b" else n for n in objects.nodes)
    return msgspec.structs.replace(objects, nodes=nodes)


def test_an_upgraded_runtime_whose_containers_were_not_restarted_stays_open() -> None:
    """A verified rule says quadratic, every running container is linear: both may be true, until they are restarted."""
    k3s = worker_b(
        recorded(), kubelet_version="v1.33.6+k3s1", runtime_version="containerd://2.1.5-k3s1.33", handlers=()
    )
    alone = settled(k3s)["worker-b"]
    assert told(alone)["default"] == ("quadratic", "likely")
    state = settled(with_kubelets(k3s))["worker-b"]
    assert "default" not in told(state)
    assert state.basis_of("runtime:default").source == "the evidence contradicts itself"
    assert len([each for each in state.leftovers if each.handler == "default"]) == 12
    (comparison,) = [each for each in viewed(with_kubelets(k3s), "", "v2") if each.name == "worker-b"]
    redis = [
        [[c.weight for _, c in t.containers] for t in tree.pods() if t.pod.name == "redis-0"]
        for case in comparison.cases
        for tree in (case.before, case.after)
    ]
    assert redis == [[[20, 1]], [[20, 1]], [[20, 1]], [[59, 6]]]
    found = audited(with_kubelets(k3s), "", "v2")
    assert "unknown" in {each.title: each.effects for each in found.workloads}["shop/payments"]
    stale = of_rule(found, "CGA103")["worker-b"].detail["stale"]
    assert len(stale) == 12
    assert stale[0] == {
        "namespace": "batch",
        "pod": "index-rebuild-4d962",
        "container": "index",
        "handler": "default",
        "weight": 1,
        "formula": "linear",
    }


def test_a_states_file_holds_for_containers_created_from_now_on() -> None:
    rules = "- {match: {name: worker-b}, runtimes: {default: runc 1.3.6}}"
    (comparison,) = [each for each in viewed(with_kubelets(recorded()), rules, "v2") if each.name == "worker-b"]
    assert str(comparison.state.runtime("default")) == "runc 1.3.6 (quadratic)"
    weights = {
        moment: [c.weight for _, c in next(t for t in tree.pods() if t.pod.name == "redis-0").containers]
        for moment, tree in (("now", comparison.cases[0].before), ("after", comparison.cases[0].after))
    }
    assert weights == {"now": [20, 1], "after": [59, 6]}
    assert len(comparison.state.contradictions) == 2


def test_what_is_left_over_has_the_quota_of_the_release_that_created_it() -> None:
    """The kernel's own files of worker-b, whose containers runc 1.1.15 created: it writes the raw quota, runc 1.3.6 does not."""
    rules = "- {match: {name: worker-b}, runtimes: {default: runc 1.3.6}}"
    objects = with_kubelets(recorded())
    (comparison,) = [each for each in viewed(objects, rules, "v2") if each.name == "worker-b"]
    held = {
        (row["pod"], row["container"]): (row["weight"], row["quota_us"])
        for row in golden_json("cgroups.json")
        if row["node"] == "worker-b" and row["level"] == "container"
    }
    predicted = {
        (tree.pod.name, container.name): (found.weight, found.quota_us)
        for tree in comparison.cases[0].before.pods()
        for container, found in tree.containers
    }
    assert predicted.items() <= held.items()
    assert predicted["redis-0", "exporter"] == (1, 2500)
    finding = of_rule(audited(objects, rules, "v2"), "CGA302")["data/redis"]
    assert (finding.where.pod, finding.where.container) == ("redis-0", "exporter")
    print(finding)


@pytest.mark.parametrize(
    ("handler", "said"), [("kata-qemu", "none"), ("gvisor", "none"), ("runsc", "none"), ("sysbox-runc", "linear")]
)
def test_a_handler_that_is_no_runc_is_not_upgraded_to_quadratic(handler: str, said: str) -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": handler, "features": {"userNamespaces": False}}]
    objects = cluster(raw, pod("p", container("a", "300m"), container("b", "50m"), runtimeClassName=handler))
    (comparison,) = viewed(objects, "- {cgroup: v2}", "runtime")
    assert told(comparison.state)[handler] == (said, "likely")
    assert of_rule(audited(objects, "- {cgroup: v2}", "runtime"), "CGA204") == {}


def test_what_is_only_known_not_to_be_quadratic_is_linear_once_somebody_says_so() -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": False}}]
    objects = cluster(raw, pod("p", container("c", "1")))
    values = {
        rules: audited(objects, rules).nodes[0].known["runtime:default"]
        for rules in ("- {cgroup: v2}", "- {cgroup: v2, runtimes: {default: linear}}")
    }
    assert [(each.value, each.confidence) for each in values.values()] == [
        ("not quadratic", "likely"),
        ("linear", "stated"),
    ]


def test_a_runtime_class_with_an_empty_handler_stands_for_the_default() -> None:
    def of(name: str) -> dict[str, Any]:
        return {"kind": "RuntimeClass", "metadata": {"name": name}, "handler": "" if name == "empty" else "crun"}

    found = cluster(node(), of("empty"), of("full"))
    assert [handler(name, found) for name in (None, "empty", "full", "unread")] == [
        "default",
        "default",
        "crun",
        "unread",
    ]


@pytest.mark.parametrize(
    ("handler", "weight", "known", "why"),
    [
        # Of gVisor and Kata the default is what nobody set.
        ("runsc", 100, "none", "likely"),
        ("kata", 100, "none", "likely"),
        # What is seen outranks a handler's name; of what is no name of a runtime 100 may be anything's.
        ("fast", 100, None, "unknown"),
        ("runsc", 39, "linear", "certain"),
        ("sysbox", 100, "quadratic", "likely"),
        ("default", 100, "quadratic", "likely"),
    ],
)
def test_what_the_containers_of_a_sandbox_prove(handler: str, weight: int, known: str | None, why: str) -> None:
    of_class = {} if handler == "default" else {"runtimeClassName": handler}
    raw = pod("p", container("app", "1"), container("side", "100m"), **of_class)
    raw["status"]["containerStatuses"] = [
        {"name": "app", "containerID": "containerd://app", "state": {"running": {"startedAt": "2026-11-20T00:00:00Z"}}}
    ]
    objects = cluster(node(), raw)
    parent = paths.pod(objects.pods[0], "systemd")
    path = paths.container("containerd://app", parent, "systemd")
    assert path is not None
    answers = KubeletAnswers("n1", "v2", False, {path: linear_inverse(weight)}, None, ())
    measured_ = with_answers(objects, {"n1": answers})
    (comparison,) = viewed(measured_, to="runtime")
    state = comparison.state
    assert state.contradictions == ()
    assert [each.formula for each in state.leftovers] == ([] if known else ["quadratic"])
    assert state.basis_of(f"runtime:{handler}").confidence == why
    assert {case.before.setup.runtime(handler).formula for case in comparison.cases} == (
        {known} if known else {"linear", "quadratic"}
    )
    # A new runc changes nothing in a sandbox, nor where it is there already.
    assert list(of_rule(audited(measured_, to="runtime"), "CGA204")) == ["default/p"] * (known in ("linear", None))


def test_containers_that_differ_and_have_the_default_alike_were_given_no_weight() -> None:
    """gVisor under a name that says nothing of it: 100 is the quadratic weight of 1 CPU, and of nothing else."""
    raw = pod("p", container("app", "1"), container("side", "100m"), runtimeClassName="secure")
    raw["status"]["containerStatuses"] = [
        {
            "name": name,
            "containerID": f"containerd://{name}",
            "state": {"running": {"startedAt": "2026-11-20T00:00:00Z"}},
        }
        for name in ("app", "side")
    ]
    objects = cluster(node(), raw)
    parent = paths.pod(objects.pods[0], "systemd")
    shown = {
        str(paths.container(f"containerd://{name}", parent, "systemd")): linear_inverse(100) for name in ("app", "side")
    }
    measured_ = with_answers(objects, {"n1": KubeletAnswers("n1", "v2", False, shown, None, ())})
    (comparison,) = viewed(measured_, to="runtime")
    assert told(comparison.state)["secure"] == ("none", "certain")
    assert (comparison.state.contradictions, comparison.state.leftovers) == ((), ())
    (piece,) = [each for each in comparison.state.evidence if each.about == "runtime:secure"]
    assert (
        piece.saw == "all its containers have weight 100, for 102 and 1024 shares: no formula makes that, nobody set it"
    )
    assert [each.rule for each in audited(measured_, to="runtime").findings] == ["CGA001"]
    # One container alone may have been given it by hand.
    alone = {path: share for path, share in shown.items() if "side" in path}
    (open_,) = viewed(with_answers(objects, {"n1": KubeletAnswers("n1", "v2", False, alone, None, ())}), to="runtime")
    assert told(open_.state).get("secure") is None
    # Who says so is not contradicted.
    (said,) = viewed(measured_, "- {runtimes: {secure: runsc}}", "runtime")
    assert said.state.contradictions == ()


@pytest.mark.parametrize("said", ["", "- {runtimes: {default: kata 3.2}}"])
def test_a_default_runtime_that_sets_no_weight_has_no_user_namespaces_either(said: str) -> None:
    """Not quadratic is not linear: Kata is neither, and what was measured was in no case."""
    raw, plain = pod("p", container("app", "1"), container("side", "100m")), node()
    plain["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": False}}]
    raw["status"]["containerStatuses"] = [
        {"name": name, "containerID": f"containerd://{name}", "state": {"running": {}}} for name in ("app", "side")
    ]
    objects = cluster(plain, raw)
    parent = paths.pod(objects.pods[0], "systemd")
    shown = {
        str(paths.container(f"containerd://{each}", parent, "systemd")): linear_inverse(100) for each in ("app", "side")
    }
    (found,) = viewed(
        with_answers(objects, {"n1": KubeletAnswers("n1", "v2", False, shown, None, ())}), said, "runtime"
    )
    assert told(found.state)["default"] == ("none", "certain")
    assert found.state.contradictions == ()
    assert {case.before.setup.runtime("default").formula for case in found.cases} == {"none"}


def test_a_youki_that_the_user_names_is_not_contradicted_by_its_features() -> None:
    plain = node()
    plain["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": False}}]
    objects = cluster(plain, pod("p", container("a", "1")))
    (found,) = viewed(objects, "- {cgroup: v2, runtimes: {default: youki 0.5.7}}", "runtime")
    assert (told(found.state)["default"], found.state.contradictions) == (("quadratic", "stated"), ())
    (other,) = viewed(objects, "- {cgroup: v2, runtimes: {default: runc 1.3.6}}", "runtime")
    assert len(other.state.contradictions) == 1


@pytest.mark.parametrize("requests", [("2540m",), ("2540m", "2550m")])
def test_weight_100_is_also_the_linear_one_of_two_and_a_half_cpus(requests: tuple[str, ...]) -> None:
    raw = pod("p", *[container(f"c{place}", request) for place, request in enumerate(requests)])
    raw["status"]["containerStatuses"] = [
        {"name": each["name"], "containerID": f"containerd://{each['name']}", "state": {"running": {}}}
        for each in raw["spec"]["containers"]
    ]
    objects = cluster(node(cpu="8"), raw)
    parent = paths.pod(objects.pods[0], "systemd")
    ids = [str(each.runtime_id) for each in objects.pods[0].containers]
    shown = {str(paths.container(each, parent, "systemd")): linear_inverse(100) for each in ids}
    answers = {"n1": KubeletAnswers("n1", "v2", False, shown, None, ())}
    (comparison,) = viewed(with_answers(objects, answers), to="runtime")
    assert told(comparison.state)["default"] == ("linear", "likely")
    (said,) = viewed(with_answers(objects, answers), "- {runtimes: {default: runc 1.1.15}}", "runtime")
    assert said.state.contradictions == ()


def test_false_features_of_a_handler_that_may_be_any_shim_are_a_hint() -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [
        {"name": name, "features": {"userNamespaces": False}} for name in ("", "spin", "crun-old", "kata")
    ]
    found = settled(cluster(raw, pod("p", container("c", "1"), runtimeClassName="spin")))["n1"]
    assert {name: told(found).get(name) for name in ("default", "spin", "crun-old", "kata")} == {
        "default": ("linear", "likely"),
        "spin": None,
        "crun-old": ("linear", "likely"),
        "kata": ("none", "likely"),
    }
    assert found.hints(["spin"]) == ("userNamespaces is false: a hint at not quadratic",)


def test_youki_has_no_id_mapped_mounts_whatever_its_formula() -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": "youki", "features": {"userNamespaces": False}}]
    objects = cluster(raw, pod("p", container("a", "1"), container("b", "20m"), runtimeClassName="youki"))
    (open_,) = viewed(objects, "- {cgroup: v2}", "runtime")
    assert [case.before.setup.runtime("youki").formula for case in open_.cases] == ["linear", "quadratic"]
    (told_,) = viewed(objects, "- {cgroup: v2, runtimes: {youki: youki 0.5.7}}", "runtime")
    assert told_.state.contradictions == ()


def test_a_name_is_no_surer_than_it_was_where_the_formula_alone_was_measured() -> None:
    """The file says crun 1.21 where runc 1.1.15 runs: both are linear, and a target that names runc moves one of them only."""
    objects = with_kubelets(recorded())
    wrong = "- {match: {name: worker-b}, runtimes: {default: crun 1.21}}"
    by_name = {each.name: each for each in audited(objects, wrong, "runc=1.3.6").nodes}["worker-b"]
    known = by_name.known["runtime:default"]
    assert (known.value, known.confidence, by_name.confidence) == (
        "linear, crun 1.21 is stated",
        "certain",
        "stated",
    )
    # What has no name in it rests on the formula, which is measured.
    by_version = {each.name: each for each in audited(objects, wrong, "v2").nodes}["worker-b"]
    assert by_version.confidence == "certain"
    plain = {each.name: each for each in audited(objects, "", "runc=1.3.6").nodes}["worker-b"]
    assert (plain.known["runtime:default"].value, plain.confidence) == ("linear", "certain")
