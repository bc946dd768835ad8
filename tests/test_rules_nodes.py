"""CGA001, CGA101 to CGA103: when they fire, when they do not, and what they say."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import (
    ONE,
    V1,
    V2_LINEAR,
    audited,
    cluster,
    container,
    node,
    of_rule,
    other,
    pod,
    recorded_audit,
    severities,
    the_finding,
)


def test_001_names_each_gap() -> None:
    result = audited(cluster(node(), pod("p", container("c"), on="gone")), V2_LINEAR)
    (finding,) = of_rule(result, "CGA001").values()
    assert (finding.severity, finding.subject.name) == ("high", "node gone")
    assert finding.remedy == "Read all nodes together with the pods."


@pytest.mark.parametrize(
    ("rules", "to", "expected"),
    [
        (V1, "kubelet=1.35", "critical"),
        (V1, "kubelet=1.34", "medium"),
        (V1, "runtime", "medium"),
        (V1, "v2", "low"),
        (V1, "v2,kubelet=1.36", "low"),
        (V2_LINEAR, "kubelet=1.35", None),
    ],
)
def test_101_a_v1_node_does_not_come_back_from_kubelet_1_35(rules: str, to: str, expected: str | None) -> None:
    assert severities(audited(cluster(node(), ONE), rules, to), "CGA101").get("n1") == expected


@pytest.mark.parametrize(("to", "follows"), [("v2", "; this migration moves it to cgroup v2."), ("runtime", None)])
@pytest.mark.parametrize(
    ("kubelet", "version", "stays", "move"),
    [
        ("v1.34.1", "1.34.1", "; it stays on cgroup v1, and a kubelet from 1.35 on does not start there.", True),
        (
            "odd",
            "of unknown version",
            "; it stays on cgroup v1, and a kubelet from 1.35 on does not start there.",
            True,
        ),
        ("v1.35.1", "1.35.1", ", which runs there only because failCgroupV1 is false.", False),
    ],
)
def test_101_a_node_that_has_such_a_kubelet_is_not_moved_before_it_gets_one(
    kubelet: str, version: str, stays: str, move: bool, to: str, follows: str | None
) -> None:
    finding = the_finding("CGA101", V1, to, node(kubelet=kubelet), ONE)
    before = " before it gets a kubelet from 1.35 on" if move else ""
    assert finding.seen == f"n1 is on cgroup v1 with kubelet {version}{follows or stays}"
    assert finding.remedy == (
        f"Move the node to cgroup v2{before}: a newer OS image, the only way where systemd or the kernel (before 5.8) is too old "
        "for v2, as on Amazon Linux 2; or boot it with systemd.unified_cgroup_hierarchy=1. failCgroupV1: false in the kubelet's "
        "configuration only buys time."
    )


def test_101_says_if_it_is_only_possible() -> None:
    (finding,) = of_rule(audited(cluster(node(), ONE), "", "kubelet=1.35"), "CGA101").values()
    assert (finding.severity, finding.when) == ("critical", "if cgroup v1")
    assert finding.seen == (
        "n1 is on cgroup v1 with kubelet 1.33.13; it stays on cgroup v1, and kubelet 1.35.0 does not start there."
    )


def test_101_a_boot_parameter_does_not_help_an_old_systemd() -> None:
    finding = the_finding("CGA101", V1, "v2", node(), ONE)
    assert finding.remedy == (
        "Move the node to cgroup v2 before it gets a kubelet from 1.35 on: a newer OS image, the only way where systemd or the "
        "kernel (before 5.8) is too old for v2, as on Amazon Linux 2; or boot it with systemd.unified_cgroup_hierarchy=1. "
        "failCgroupV1: false in the kubelet's configuration only buys time."
    )


def test_102_names_what_is_open_and_what_settles_it() -> None:
    objects = cluster(node(), ONE, pod("q", container("c", "1"), runtimeClassName="crun"))
    (finding,) = of_rule(audited(objects), "CGA102").values()
    assert finding.seen == (
        "n1: not known are its cgroup version and the runtime of its handler crun and the runtime of its handler default; "
        "predicted for each possibility."
    )
    assert "with what you saw: `- {match: {name: n1}, cgroup: v1 or v2, " in finding.remedy
    assert "runtimes: {crun: crun X.Y.Z, default: runc X.Y.Z}}" in finding.remedy
    assert of_rule(audited(objects, "- {cgroup: v2, runtimes: {default: linear, crun: linear}}"), "CGA102") == {}


def test_103_two_formulas_on_a_node_and_what_they_do_not_change() -> None:
    findings = of_rule(recorded_audit(), "CGA103")
    assert list(findings) == ["worker-a"]
    assert findings["worker-a"].seen == (
        "worker-a: runc-old: runc 1.1.15 (linear), crun: crun 1.28 (quadratic), default: runc 1.3.6 (quadratic). "
        "The pods of edge/legacy-gateway and edge/gateway ask for the same: the container envoy (300m) has weight 12 in the "
        "one and 40 in the other, but both pods have weight 14, so neither pod gets more CPU than the other."
    )


def test_pods_outside_the_selection_have_no_findings() -> None:
    objects = cluster(node(), ONE)
    hidden = replace(objects, pods=tuple(other(each, selected=False) for each in objects.pods))
    assert {finding.subject.kind for finding in audited(hidden, V1, "v2").findings} == {"node"}


def test_101_back_to_v1(tmp_path: Path) -> None:
    (tmp_path / "back.yaml").write_text("- {cgroup: v1}")
    back = str(tmp_path / "back.yaml")
    finding = the_finding("CGA101", V2_LINEAR, back, node(kubelet="v1.34.1"), ONE)
    assert (finding.severity, finding.seen) == (
        "medium",
        "n1 goes from cgroup v2 back to v1; a kubelet from 1.35 on does not start there.",
    )
    finding = the_finding("CGA101", V2_LINEAR, back, node(kubelet="v1.35.1"), ONE)
    assert (finding.severity, finding.seen) == (
        "critical",
        "n1 goes from cgroup v2 back to v1; kubelet 1.35.1 does not start there unless failCgroupV1 is false.",
    )
    finding = the_finding("CGA101", V1, "runtime", node(kubelet="v1.35.1"), ONE)
    assert (finding.severity, finding.seen) == (
        "medium",
        "n1 is on cgroup v1 with kubelet 1.35.1, which runs there only because failCgroupV1 is false.",
    )


def test_102_names_only_what_is_open() -> None:
    finding = the_finding("CGA102", "- {runtimes: {default: runc 1.3.6}}", "v2", node(), ONE)
    assert finding.seen == "n1: not known is its cgroup version; predicted for each possibility."
    assert finding.remedy == (
        "Look on the node with `stat -fc %T /sys/fs/cgroup` (cgroup2fs is v2, tmpfs is v1), and say it with --states FILE, "
        "with what you saw: `- {match: {name: n1}, cgroup: v1 or v2}`."
    )
    finding = the_finding("CGA102", "- {cgroup: v2}", "v2", node(), ONE)
    assert finding.seen == "n1: not known is the runtime of its handler default; predicted for each possibility."
    assert finding.remedy == (
        "Look on the node with `runc --version` or `crun --version`, and say it with --states FILE, with what you saw: "
        "`- {match: {name: n1}, runtimes: {default: runc X.Y.Z}}`."
    )


def test_103_needs_both_formulas_on_a_v2_node_of_which_nothing_is_open() -> None:
    uses = pod("q", container("app", "1"), runtimeClassName="new")
    both = "runtimes: {default: runc 1.1.15, new: runc 1.3.6}"
    objects = cluster(node(), ONE, uses)
    (finding,) = of_rule(audited(objects, f"- {{cgroup: v2, {both}}}", "v2"), "CGA103").values()
    assert (finding.severity, finding.when) == ("low", "")
    for rules in (
        f"- {{cgroup: v1, driver: systemd, {both}}}",
        f"- {{{both}}}",
        "- {cgroup: v2, runtimes: {default: runc 1.3.6, new: runc 1.3.6}}",
        "- {cgroup: v2, runtimes: {default: runc 1.1.15, new: runc 1.1.15}}",
    ):
        assert of_rule(audited(objects, rules, "v2"), "CGA103") == {}, rules


def test_103_what_is_open_of_the_target_leaves_no_doubt_of_now() -> None:
    objects = cluster(node(), ONE, pod("q", container("app", "1"), runtimeClassName="new"))
    rules = "- {cgroup: v2, runtimes: {default: linear, new: quadratic}}"
    seen = [
        the for to in ("v2", "runc=1.3.6,crun=1.28") for the in of_rule(audited(objects, rules, to), "CGA103").values()
    ]
    assert [(each.when, each.seen, each.remedy) for each in seen] == 2 * [
        (
            "",
            "n1: default: linear, new: quadratic. The pods of default/q and default/p ask for the same: the container app "
            "(1000m) has weight 100 in the one and 39 in the other, but both pods have weight 39, so neither pod gets more CPU "
            "than the other.",
            "Nothing for the CPU between pods. Do not compare cpu.weight of containers across pods; inside a pod the split "
            "follows the formula, see CGA204.",
        )
    ]


def test_103_compares_pods_of_one_class_that_ask_for_the_same() -> None:
    """No example is taken from pods that are alike in the weight of the pod only."""
    both = "- {cgroup: v2, runtimes: {default: runc 1.1.15, new: runc 1.3.6}}"

    def example(*containers: dict[str, Any], **spec: Any) -> str:
        first = pod("p", container("app", "1"), container("side", "100m"))
        second = pod("q", *containers, runtimeClassName="new", **spec)
        return the_finding("CGA103", both, "v2", node(), first, second).seen

    assert "ask for the same" in example(container("app", "1"), container("side", "100m"))
    for containers in (
        (container("app", "900m"), container("side", "200m")),
        (container("app", "1", "2"), container("side", "100m")),
    ):
        assert "ask for the same" not in example(*containers)
    assert "ask for the same" not in example(container("app", "1"), container("side", "100m"), qos="Guaranteed")
    assert "ask for the same" not in example(container("main", "1"), container("side", "100m"))


def test_103_compares_no_container_of_a_sandbox() -> None:
    """kata sets no weight on the host, and its pod is the first by name."""
    rules = "- {cgroup: v2, runtimes: {default: runc 1.1.15, new: runc 1.3.6, kata: kata}}"
    handlers = (("a", "kata"), ("b", None), ("c", "new"))
    pods = [pod(name, container("x", "1"), **({"runtimeClassName": of} if of else {})) for name, of in handlers]
    seen = the_finding("CGA103", rules, "v2", node(), *pods).seen
    assert (
        "The pods of default/c and default/b ask for the same: the container x (1000m) has weight 100 in the one "
        in seen
    )


def test_102_a_hint_at_a_handler_that_no_pod_uses_is_no_hint_at_another() -> None:
    def seen(**spec: Any) -> str:
        objects = cluster(node(containerRuntimeVersion="containerd://2.1.5"), pod("p", container("c", "1"), **spec))
        return of_rule(audited(objects, "- {cgroup: v2}", "v2"), "CGA102")["n1"].seen

    assert seen(runtimeClassName="wasm") == (
        "n1: not known is the runtime of its handler wasm; predicted for each possibility."
    )
    assert seen().startswith(
        "n1: not known is the runtime of its handler default; predicted for each possibility. Hints: runtime containerd://2.1.5: "
    )


def test_101_where_the_version_is_open_the_worst_fate_is_told_and_the_other_too(tmp_path: Path) -> None:
    to = tmp_path / "to.yaml"
    to.write_text("- {cgroup: v1}\n", encoding="utf-8")
    finding = of_rule(audited(cluster(node(kubelet="v1.35.1"), ONE), "", str(to)), "CGA101")["n1"]
    assert (finding.severity, finding.when) == ("critical", "if cgroup v2")
    assert finding.seen == (
        "If cgroup v2: n1 goes from cgroup v2 back to v1; kubelet 1.35.1 does not start there unless failCgroupV1 is false. "
        "If cgroup v1: n1 is on cgroup v1 with kubelet 1.35.1, which runs there only because failCgroupV1 is false."
    )
    assert finding.remedy.startswith("If cgroup v2: Leave the node on cgroup v2: v1 is on its way out (")
    assert ". If cgroup v1: Move the node to cgroup v2: a newer OS image, " in finding.remedy
