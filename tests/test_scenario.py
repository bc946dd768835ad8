"""`--to`: what it means, and what a node is after it."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.collect import configz
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.detect import target as scenario
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.errors import UsageError
from tests.support import V1, V2_LINEAR, audited_with_actions, cluster, compared, container, node, of_rule, pod


def then(to: str, rules: str, handler: str | None = None) -> Setup:
    spec = {"runtimeClassName": handler} if handler else {}
    objects = cluster(node(), pod("p", container("c", "1"), **spec))
    return compared(objects, rules, to)[0].cases[0].after


V1_OLD = "- {cgroup: v1, runtimes: {default: runc 1.1.5}}"


@pytest.mark.parametrize(
    ("to", "cgroup", "runtime", "kubelet"),
    [
        ("v2", "v2", "runc 1.1.5 (linear)", "1.33.13"),
        ("runtime", "v1", "runc 1.3.2 (quadratic)", "1.33.13"),
        ("v2+runtime", "v2", "runc 1.3.2 (quadratic)", "1.33.13"),
        ("v2,runtime", "v2", "runc 1.3.2 (quadratic)", "1.33.13"),
        ("kubelet=1.35", "v1", "runc 1.1.5 (linear)", "1.35.0"),
        ("runc=1.3.6", "v1", "runc 1.3.6 (quadratic)", "1.33.13"),
        ("runc=1.2.9,v2,kubelet=1.36.1", "v2", "runc 1.2.9 (linear)", "1.36.1"),
        ("crun=1.28", "v1", "runc 1.1.5 (linear)", "1.33.13"),
        ("runc=1.3.6+v2", "v2", "runc 1.3.6 (quadratic)", "1.33.13"),
        ("v2+runc=1.3.6", "v2", "runc 1.3.6 (quadratic)", "1.33.13"),
        ("kubelet=1.35.1+v2+runtime", "v2", "runc 1.3.2 (quadratic)", "1.35.1"),
        ("kubelet=1.35+k3s1+runc=1.3.6+azure", "v1", "runc 1.3.6+azure (quadratic)", "1.35.0"),
    ],
)
def test_each_target_starts_from_what_the_node_is(to: str, cgroup: str, runtime: str, kubelet: str) -> None:
    setup = then(to, V1_OLD)
    assert (setup.cgroup, str(setup.runtime("default")), str(setup.kubelet_version)) == (cgroup, runtime, kubelet)


def test_a_runtime_target_leaves_other_runtimes_alone() -> None:
    rules = "- {cgroup: v2, runtimes: {default: runc 1.1.5, crun: crun 1.21, kata: kata, odd: linear}}"
    after = dict(then("runc=1.3.6", rules).runtimes)
    assert {handler: str(run) for handler, run in after.items()} == {
        "default": "runc 1.3.6 (quadratic)",
        "crun": "crun 1.21 (linear)",
        "kata": "kata (none)",
        "odd": "runc 1.3.6 (quadratic)",
    }


def test_of_an_unknown_runtime_the_handlers_name_decides() -> None:
    objects = cluster(node(), pod("p", container("c", "1"), runtimeClassName="crun-old"), pod("q", container("c", "1")))
    (comparison,) = compared(objects, "- {cgroup: v2}", "runc=1.3.6")
    after = [{handler: str(run) for handler, run in case.after.runtimes} for case in comparison.cases]
    assert after == [
        {"crun-old": "crun (linear)", "default": "runc 1.3.6 (quadratic)"},
        {"crun-old": "crun (quadratic)", "default": "runc 1.3.6 (quadratic)"},
    ]


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("runc=1.3.6", [("", "runc 1.3.6 (quadratic)")]),
        ("crun=1.28", [("unnamed runtime is runc", "linear"), ("unnamed runtime is crun", "crun 1.28 (quadratic)")]),
        (
            "runc=1.3.6,crun=1.20",
            [("unnamed runtime is runc", "runc 1.3.6 (quadratic)"), ("unnamed runtime is crun", "crun 1.20 (linear)")],
        ),
        (
            "youki=0.5.7,crun=1.20",
            [
                ("unnamed runtime is runc", "linear"),
                ("unnamed runtime is crun", "crun 1.20 (linear)"),
                ("unnamed runtime is youki", "youki 0.5.7 (quadratic)"),
            ],
        ),
        ("v2+runtime", [("", "quadratic")]),
    ],
)
def test_targets_leave_open_what_a_handler_runs_that_does_not_say_it(to: str, expected: list[tuple[str, str]]) -> None:
    objects = cluster(node(), pod("p", container("c", "1")))
    (comparison,) = compared(objects, "- {cgroup: v2, runtimes: {default: linear}}", to)
    assert [(case.when, str(case.after.runtime("default"))) for case in comparison.cases] == expected


@pytest.mark.parametrize(
    ("used", "cases"), [(None, [""]), ("odd", ["unnamed runtime is runc", "unnamed runtime is crun"])]
)
def test_what_a_handler_runs_that_no_pod_uses_is_no_question(used: str | None, cases: list[str]) -> None:
    objects = cluster(node(), pod("p", container("c", "1"), runtimeClassName=used))
    rules = "- {cgroup: v2, runtimes: {default: runc 1.3.6, odd: linear}}"
    (comparison,) = compared(objects, rules, "crun=1.28")
    assert [case.when for case in comparison.cases] == cases


def test_a_target_beside_another_hides_no_container_that_does_not_start() -> None:
    objects = cluster(node(kubelet="v1.32.5"), pod("p", container("c", "77m", "77m"), qos="Guaranteed"))
    for to in ("runc=1.3.6", "runc=1.3.6,crun=1.28"):
        result = audited_with_actions(objects, "- {cgroup: v1, driver: systemd}", to)
        assert [(each.rule, each.severity) for each in result.findings[:1]] == [("CGA301", "critical")]
        assert result.workloads[0].effects == ("may-stop",)
        assert result.coverage.unmatched == ()


@pytest.mark.parametrize(("handler", "said"), [("runsc", "runsc (none)"), ("kata-qemu", "kata (none)")])
@pytest.mark.parametrize("to", ["runtime", "runc=1.3.6"])
def test_a_handler_named_after_a_runtime_with_one_formula_is_not_upgraded(handler: str, said: str, to: str) -> None:
    objects = cluster(node(), pod("p", container("c", "1"), container("d", "50m"), runtimeClassName=handler))
    (comparison,) = compared(objects, "- {cgroup: v2}", to)
    assert {str(case.after.runtime(handler)) for case in comparison.cases} == {said}
    result = audited_with_actions(objects, "- {cgroup: v2}", to)
    assert [each.rule for each in result.findings if each.rule == "CGA204"] == []
    assert result.workloads[0].confidence == "likely"


@pytest.mark.parametrize(
    ("now", "to", "after"),
    [
        ("cgroup: v1, root: {docker: 1024}", "v2", {"": (100, 100)}),
        ("cgroup: v1, system_slice: 1024, root: {docker: 1024}", "v2", {"": (100, 100)}),
        (
            "cgroup: v1, system_slice: 2048, root: {docker: 1024}",
            "v2",
            {"systemd set system.slice": (200, 100), "a kubelet set system.slice": (79, 100)},
        ),
        (
            "cgroup: v1, system_slice: 512, root: {docker: 3000}",
            "v2",
            {
                "systemd set system.slice and docker": (50, 292),
                "a kubelet set system.slice and docker": (20, 115),
            },
        ),
        # Both formulas make the same of it.
        ("cgroup: v1, system_slice: 2, root: {docker: 1024}", "v2", {"": (1, 100)}),
        (
            "cgroup: v2, system_slice: 200, root: {docker: 100}",
            "- cgroup: v1",
            {"systemd set system.slice": (2048, 1024), "a kubelet set system.slice": (5219, 1024)},
        ),
        # Nothing is converted where the version stays, or the value after it is said.
        ("cgroup: v2, system_slice: 200, root: {docker: 100}", "v2", {"": (200, 100)}),
        ("cgroup: v1, system_slice: 2048, root: {docker: 1024}", "- {cgroup: v2, system_slice: 150}", {"": (150, 100)}),
    ],
)
def test_who_set_a_value_at_the_root_decides_what_it_becomes(
    tmp_path: Path, now: str, to: str, after: dict[str, tuple[int, int]]
) -> None:
    if to.startswith("- "):
        (tmp_path / "after.yaml").write_text(to)
        to = str(tmp_path / "after.yaml")
    objects = cluster(node(), pod("p", container("c", "1")))
    (comparison,) = compared(objects, f"- {{{now}, runtimes: {{default: linear}}}}", to)
    found = {case.when: (case.after.system_slice, dict(case.after.root)["docker"]) for case in comparison.cases}
    assert found == after


def test_a_kubelet_that_enforces_nothing_left_the_value_to_systemd() -> None:
    said = {"cgroupDriver": "systemd", "enforceNodeAllocatable": ["pods"]}
    config = configz.config(json.dumps({"kubeletconfig": said}).encode())
    answers = KubeletAnswers("n1", "v1", False, {"/kubepods.slice": 4096, "/system.slice": 2048}, config, ())
    objects = replace(cluster(node(), pod("p", container("c", "1"))), kubelets={"n1": answers})
    (comparison,) = compared(objects, "- {runtimes: {default: linear}}", "v2")
    assert [(case.when, case.after.system_slice) for case in comparison.cases] == [("", 200)]


@pytest.mark.parametrize(("setter", "weights"), [("systemd", (200, 292)), ("kubelet", (79, 115))])
def test_who_set_a_value_at_the_root_can_be_said(tmp_path: Path, setter: str, weights: tuple[int, int]) -> None:
    objects = cluster(node(), pod("p", container("c", "1")))
    said = "cgroup: v1, system_slice: 2048, root: {docker: 3000, user.slice: 1024}, runtimes: {default: linear}"
    rules = f"- {{{said}, set_by: {setter}}}"
    (comparison,) = compared(objects, rules, "v2")
    (case,) = comparison.cases
    assert (case.when, dict(case.after.top_level)) == (
        "",
        {"system.slice": weights[0], "docker": weights[1], "user.slice": 100},
    )
    assert of_rule(audited_with_actions(objects, rules, "v2"), "CGA102") == {}
    (tmp_path / "to.yaml").write_text(f"- {{cgroup: v2, set_by: {setter}}}")
    with pytest.raises(
        UsageError, match=r"set_by says who set what is there now; say it in the file for --states, and here"
    ):
        compared(objects, rules, str(tmp_path / "to.yaml"))


def test_a_kubelets_reserve_of_1_cpu_looks_like_a_default() -> None:
    objects = cluster(node(), pod("p", container("c", "1")))
    rules = "- {cgroup: v1, system_slice: 1024, set_by: kubelet, runtimes: {default: linear}}"
    (comparison,) = compared(objects, rules, "v2")
    assert [(case.when, case.after.system_slice) for case in comparison.cases] == [("", 39)]
    assert of_rule(audited_with_actions(objects, rules, "v2"), "CGA201") == {}


def test_who_set_a_value_at_the_root_is_asked() -> None:
    objects = cluster(node(), pod("p", container("c", "1")))
    found = audited_with_actions(objects, "- {cgroup: v1, system_slice: 2048, runtimes: {default: linear}}", "v2")
    (asked,) = of_rule(found, "CGA102").values()
    assert (asked.severity, asked.certainty) == ("medium", "certain")
    assert asked.detail["whoSet"] == [{"name": "system.slice", "unit": "shares", "before": 2048, "after": [200, 79]}]
    (question,) = found.questions
    assert (question.commands[0].command, question.states) == (
        "systemctl cat system.slice",
        "- {set_by: systemd or kubelet}",
    )
    assert [action.id for action in found.actions] == ["inspect:set_by:n1", "system-weight:n1"]
    assert found.actions[1].waits_for == ("inspect:set_by:n1",)
    rules = "- {cgroup: v1, system_slice: 2048, root: {crio: 1024, docker: 512}, runtimes: {default: linear}}"
    (both,) = of_rule(audited_with_actions(objects, rules, "v2"), "CGA102").values()
    assert both.detail["whoSet"] == [
        {"name": "system.slice", "unit": "shares", "before": 2048, "after": [200, 79]},
        {"name": "docker", "unit": "shares", "before": 512, "after": [50, 20]},
    ]
    assert found.workloads[0].effects == ("unknown", "nominal")


@pytest.mark.parametrize(("cpu", "weight"), [("990m", 39), ("1", 39), ("1010m", 40)])
def test_an_enforced_reserve_of_one_cpu_is_no_default(cpu: str, weight: int) -> None:
    said = {
        "cgroupDriver": "systemd",
        "enforceNodeAllocatable": ["pods", "system-reserved"],
        "systemReservedCgroup": "/system.slice",
        "systemReserved": {"cpu": cpu},
    }
    config = configz.config(json.dumps({"kubeletconfig": said}).encode())
    answers = KubeletAnswers("n1", "v1", False, {"/kubepods.slice": 4096}, config, ())
    objects = replace(cluster(node(), pod("p", container("c", "1"))), kubelets={"n1": answers})
    (comparison,) = compared(objects, "- {runtimes: {default: linear}}", "v2")
    assert comparison.state.basis_of("system_slice").confidence == "certain"
    assert [case.after.system_slice for case in comparison.cases] == [weight]


@pytest.mark.parametrize("turn", [1, -1])
def test_the_order_of_rules_does_not_change_the_unit(tmp_path: Path, turn: int) -> None:
    target = tmp_path / "after.yaml"
    target.write_text(
        "".join(["- {system_slice: 39, root: {docker: 50}}\n", "- {match: {name: n*}, cgroup: v2}\n"][::turn])
    )
    setup = then(str(target), V1_OLD)
    assert (setup.cgroup, setup.system_slice, setup.root) == ("v2", 39, (("docker", 50),))


def test_a_target_file_says_only_what_changes(tmp_path: Path) -> None:
    target = tmp_path / "after.yaml"
    target.write_text(
        "- {match: {name: n*}, cgroup: v2, system_slice: 39, kubelet: 1.36.2, runtimes: {default: runc 1.3.6}}\n"
    )
    rules = "- {cgroup: v1, driver: cgroupfs, runtimes: {default: runc 1.1.5, crun: crun 1.21}}"
    setup = then(str(target), rules)
    assert (setup.cgroup, setup.driver, setup.system_slice, str(setup.kubelet_version)) == (
        "v2",
        "cgroupfs",
        39,
        "1.36.2",
    )
    assert [str(run) for _, run in setup.runtimes] == ["crun 1.21 (linear)", "runc 1.3.6 (quadratic)"]


def test_a_rollback_to_v1_is_a_target_file_too(tmp_path: Path) -> None:
    target = tmp_path / "after.yaml"
    target.write_text("- cgroup: v1\n")
    setup = then(str(target), "- {cgroup: v2, system_slice: 20, runtimes: {default: linear}}")
    assert (setup.cgroup, setup.system_slice) == ("v1", 204)


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ("", "--to is empty; write "),
        ("bananas", "--to: 'bananas' is neither a target nor a file; write "),
        ("v2,bananas", "--to: 'bananas' is not a target; write "),
        ("runc=", "--to: 'runc=' is not a target; write "),
        ("runc=1.3", "--to: runc 1.3 holds both formulas (1.3.2 is the first quadratic one): give the full version"),
        ("kubelet=new", "--to: 'kubelet=new' is not a target; write "),
        ("runc=1.3.6,runc=1.1.5", "--to names runc twice; give one version"),
        ("kubelet=1.34,kubelet=1.35", "--to names kubelet twice; give one version"),
        ("containerd=2.2", "--to: 'containerd=2.2' is not a target; write "),
    ],
)
def test_anything_else_is_refused(to: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        scenario.parse(to)
    assert str(caught.value).startswith(message)


def test_a_file_with_the_name_of_a_target_does_not_stand_in_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("v2", "v2+runtime", "runc=1.3.6"):
        Path(name).write_text("no states file")
        assert scenario.parse(name).rules == ()
    Path("moved").write_text("- {cgroup: v2}")
    assert len(scenario.parse("moved").rules) == 1


def test_a_scenario_describes_itself() -> None:
    assert scenario.parse("v2,runc=1.3.6,kubelet=1.35").describe() == (
        "every node on cgroup v2, every runc at 1.3.6 (quadratic), every kubelet at 1.35.0"
    )


@pytest.mark.parametrize(
    ("target", "fits"),
    [
        ("- {cgroup: v2, system_slice: 10000}", True),
        ("- {cgroup: v2, system_slice: 10001}", False),
        ("- {cgroup: v1, system_slice: 2}", True),
        ("- {cgroup: v1, system_slice: 1}", False),
        ("- {cgroup: v1, system_slice: 262144}", True),
        ("- {cgroup: v1, root: {other: 1}}", False),
        ("- {cgroup: v2, root: {other: 10001}}", False),
    ],
)
@pytest.mark.parametrize("rules", [V1, V2_LINEAR])
def test_the_ends_of_a_value_at_the_root_after_the_move(target: str, fits: bool, rules: str, tmp_path: Any) -> None:
    (tmp_path / "to.yaml").write_text(target)
    objects = cluster(node(), pod("p", container("c", "1")))
    if fits:
        assert compared(objects, rules, str(tmp_path / "to.yaml"))
        return
    with pytest.raises(UsageError, match="out of range"):
        compared(objects, rules, str(tmp_path / "to.yaml"))
