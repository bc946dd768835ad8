"""CGA001, CGA101 to CGA103: when they fire, when they do not, and what is seen."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Finding
from tests.support import (
    ONE,
    V1,
    V2_LINEAR,
    audited_with_actions,
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
    result = audited_with_actions(cluster(node(), pod("p", container("c"), on="gone")), V2_LINEAR)
    (finding,) = of_rule(result, "CGA001").values()
    assert (finding.severity, finding.subject.name) == ("high", "node gone")
    assert finding.detail["remedy"] == "Read all nodes together with the pods"


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
    assert severities(audited_with_actions(cluster(node(), ONE), rules, to), "CGA101").get("n1") == expected


def fate(finding: Finding) -> tuple[str, str, str, str, bool]:
    """The cgroup version before and after, the kubelet before and after, and whether the node comes back."""
    names = "cgroupBefore", "cgroupAfter", "kubeletBefore", "kubeletAfter", "comesBack"
    before, after, was, will, back = (finding.detail[name] for name in names)
    return before, after, was, will, back


@pytest.mark.parametrize(
    ("to", "after", "severity", "says"),
    [("v2", "v2", "low", "takes it to cgroup v2"), ("runtime", "v1", "medium", "stays on cgroup v1")],
)
@pytest.mark.parametrize(("kubelet", "version"), [("v1.34.1", "1.34.1"), ("odd", ""), ("v1.35.1", "1.35.1")])
def test_101_a_node_that_has_such_a_kubelet_is_not_moved_before_it_gets_one(
    kubelet: str, version: str, to: str, after: str, severity: str, says: str
) -> None:
    finding = the_finding("CGA101", V1, to, node(kubelet=kubelet), ONE)
    assert (finding.severity, finding.today) == (severity, True)
    assert fate(finding) == ("v1", after, version, version, True)
    assert says in finding.message


def test_101_says_if_it_is_only_possible() -> None:
    found = audited_with_actions(cluster(node(), ONE), "", "kubelet=1.35")
    (finding,) = of_rule(found, "CGA101").values()
    assert (finding.severity, finding.certainty) == ("critical", "possible")
    assert [case.when for case in finding.cases] == ["cgroup v1, linear runtime", "cgroup v1, quadratic runtime"]
    assert fate(finding) == ("v1", "v1", "1.33.13", "1.35.0", False)
    assert finding.message.endswith("This holds if cgroup v1.")


def test_101_a_boot_parameter_does_not_help_an_old_systemd() -> None:
    found = audited_with_actions(cluster(node(), ONE), V1, "kubelet=1.35")
    (finding,) = of_rule(found, "CGA101").values()
    (action,) = [each for each in found.actions if each.id in finding.actions]
    # The move is what CGA101 warns of: on v2 it is low, and what the move does to pods is found.
    assert (action.id, action.change, action.lowers) == ("cgroup-v2:n1", {"cgroup": "v2"}, (finding.id,))
    assert action.causes == ("CGA201:default/Pod/p", "CGA203:default/Pod/p")
    assert action.run == ("grubby --update-kernel=ALL --args=systemd.unified_cgroup_hierarchy=1", "reboot")
    assert action.alternatives == (
        "a newer OS image, where systemd or the kernel (before 5.8) is too old",
        "failCgroupV1: false in the kubelet's configuration, which buys time only",
    )
    assert (action.when, action.cost) == (
        "before the kubelet that refuses cgroup v1",
        "no schedulable CPU; the node is drained and restarted",
    )


def test_102_names_what_is_open_and_what_settles_it() -> None:
    objects = cluster(node(), ONE, pod("q", container("c", "1"), runtimeClassName="crun"))
    found = audited_with_actions(objects)
    (finding,) = of_rule(found, "CGA102").values()
    assert finding.severity == "medium"
    assert finding.detail["unknown"] == ["cgroup", "runtime:crun", "runtime:default"]
    assert {each.about: each.states for each in found.questions} == {
        "cgroup": "- {cgroup: v1 or v2}",
        "runtime:crun": "- {runtimes: {crun: crun X.Y.Z}}",
        "runtime:default": "- {runtimes: {default: runc X.Y.Z}}",
    }
    assert [each.commands[0].command for each in found.questions if each.about == "cgroup"] == [
        "stat -fc %T /sys/fs/cgroup"
    ]
    assert (
        of_rule(audited_with_actions(objects, "- {cgroup: v2, runtimes: {default: linear, crun: linear}}"), "CGA102")
        == {}
    )


def test_103_two_formulas_on_a_node_and_what_they_do_not_change() -> None:
    findings = of_rule(recorded_audit(), "CGA103")
    assert list(findings) == ["worker-a"]
    finding = findings["worker-a"]
    assert (finding.severity, finding.today) == ("low", True)
    assert finding.detail == {
        "stale": [],
        "handlers": {
            "crun": "crun 1.28 (quadratic)",
            "default": "runc 1.3.6 (quadratic)",
            "runc-old": "runc 1.1.15 (linear)",
        },
    }
    assert "Between pods nothing differs." in finding.message
    assert finding.actions == ()


def test_pods_outside_the_selection_have_no_findings() -> None:
    objects = cluster(node(), ONE)
    hidden = replace(objects, pods=tuple(other(each, selected=False) for each in objects.pods))
    assert {finding.subject.kind for finding in audited_with_actions(hidden, V1, "v2").findings} == {"node"}


def test_101_back_to_v1(tmp_path: Path) -> None:
    (tmp_path / "back.yaml").write_text("- {cgroup: v1}")
    back = str(tmp_path / "back.yaml")
    finding = the_finding("CGA101", V2_LINEAR, back, node(kubelet="v1.34.1"), ONE)
    assert (finding.severity, finding.today) == ("medium", False)
    assert fate(finding) == ("v2", "v1", "1.34.1", "1.34.1", True)
    found = audited_with_actions(cluster(node(kubelet="v1.35.1"), ONE), V2_LINEAR, back)
    (finding,) = of_rule(found, "CGA101").values()
    assert (finding.severity, finding.today) == ("critical", False)
    assert fate(finding) == ("v2", "v1", "1.35.1", "1.35.1", False)
    # It need not be moved: it is there.
    assert [(each.title, each.run, each.cost) for each in found.actions if each.id in finding.actions] == [
        ("Leave n1 on cgroup v2", (), "")
    ]
    finding = the_finding("CGA101", V1, "runtime", node(kubelet="v1.35.1"), ONE)
    assert (finding.severity, finding.today) == ("medium", True)
    assert fate(finding) == ("v1", "v1", "1.35.1", "1.35.1", True)


@pytest.mark.parametrize(
    ("rules", "about", "command", "states"),
    [
        (
            "- {runtimes: {default: runc 1.3.6}}",
            "cgroup",
            ("stat -fc %T /sys/fs/cgroup", "cgroup2fs is v2, tmpfs is v1"),
            "- {cgroup: v1 or v2}",
        ),
        (
            "- {cgroup: v2}",
            "runtime:default",
            (
                "runc --version",
                "linear up to runc 1.3.1 and crun 1.22, quadratic from runc 1.3.2 and crun 1.23 on",
            ),
            "- {runtimes: {default: runc X.Y.Z}}",
        ),
    ],
)
def test_102_names_only_what_is_open(rules: str, about: str, command: tuple[str, str], states: str) -> None:
    found = audited_with_actions(cluster(node(), ONE), rules, "v2")
    (finding,) = of_rule(found, "CGA102").values()
    assert finding.detail["unknown"] == [about]
    (question,) = found.questions
    assert (question.about, question.confidence, question.nodes, question.states) == (about, "unknown", ("n1",), states)
    assert (question.commands[0].command, question.commands[0].shows) == command


def test_103_needs_both_formulas_on_a_v2_node_of_which_nothing_is_open() -> None:
    uses = pod("q", container("app", "1"), runtimeClassName="new")
    both = "runtimes: {default: runc 1.1.15, new: runc 1.3.6}"
    objects = cluster(node(), ONE, uses)
    (finding,) = of_rule(audited_with_actions(objects, f"- {{cgroup: v2, {both}}}", "v2"), "CGA103").values()
    assert (finding.severity, finding.certainty, finding.cases) == ("low", "certain", ())
    for rules in (
        f"- {{cgroup: v1, driver: systemd, {both}}}",
        f"- {{{both}}}",
        "- {cgroup: v2, runtimes: {default: runc 1.3.6, new: runc 1.3.6}}",
        "- {cgroup: v2, runtimes: {default: runc 1.1.15, new: runc 1.1.15}}",
    ):
        assert of_rule(audited_with_actions(objects, rules, "v2"), "CGA103") == {}, rules


def test_103_what_is_open_of_the_target_leaves_no_doubt_of_now() -> None:
    objects = cluster(node(), ONE, pod("q", container("app", "1"), runtimeClassName="new"))
    rules = "- {cgroup: v2, runtimes: {default: linear, new: quadratic}}"
    for to in ("v2", "runc=1.3.6,crun=1.28"):
        (finding,) = of_rule(audited_with_actions(objects, rules, to), "CGA103").values()
        assert (finding.severity, finding.certainty) == ("low", "certain")
        assert finding.detail == {"stale": [], "handlers": {"default": "linear", "new": "quadratic"}}


def test_102_a_hint_at_a_handler_that_no_pod_uses_is_no_hint_at_another() -> None:
    def seen(**spec: Any) -> tuple[list[str], list[str]]:
        objects = cluster(node(containerRuntimeVersion="containerd://2.1.5"), pod("p", container("c", "1"), **spec))
        detail = of_rule(audited_with_actions(objects, "- {cgroup: v2}", "v2"), "CGA102")["n1"].detail
        return detail["unknown"], [each.partition(": ")[0] for each in detail["hints"]]

    assert seen(runtimeClassName="wasm") == (["runtime:wasm"], [])
    assert seen() == (["runtime:default"], ["runtime containerd://2.1.5"])


def test_101_where_the_version_is_open_the_worst_fate_is_told_and_the_other_too(tmp_path: Path) -> None:
    to = tmp_path / "to.yaml"
    to.write_text("- {cgroup: v1}\n", encoding="utf-8")
    finding = of_rule(audited_with_actions(cluster(node(kubelet="v1.35.1"), ONE), "", str(to)), "CGA101")["n1"]
    assert (finding.severity, finding.certainty) == ("critical", "probable")
    assert [(case.when, case.leading, case.severity) for case in finding.cases] == [
        ("cgroup v2, quadratic runtime", True, "critical"),
        ("cgroup v2, linear runtime", True, "critical"),
        ("cgroup v1, quadratic runtime", False, "medium"),
        ("cgroup v1, linear runtime", False, "medium"),
    ]
    assert fate(finding) == ("v2", "v1", "1.35.1", "1.35.1", False)
    assert finding.message.endswith("It is critical if cgroup v2.")
