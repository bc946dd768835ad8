"""The states file: what rules say, which wins, and what is refused."""

from typing import Any

import pytest

from kubectl_cgaudit import settings
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.detect import reading, states
from kubectl_cgaudit.detect import target as scenario
from kubectl_cgaudit.detect.measured import WeighedContainer
from kubectl_cgaudit.detect.settle import ladder
from kubectl_cgaudit.detect.state import Basis, State, setups
from kubectl_cgaudit.errors import UsageError
from tests.measured_support import answers
from tests.support import audited, cluster, compared, container, node, pod


def state(rules: str, **of_node: object) -> State:
    (each,) = cluster(node(**of_node)).nodes  # type: ignore[arg-type]
    return ladder(each, states.parse(rules, "s.yaml"), tuple(reading.evidence(each)))


def test_the_documented_rule_is_read_as_it_says() -> None:
    found = state(
        "- {match: {name: worker-*}, cgroup: v2, driver: systemd, kubelet: linear, system_slice: 20,\n"
        "   runtimes: {default: runc 1.3.6, crun-old: crun 1.21, odd: linear}, root: {docker: 100}}",
        name="worker-1",
    )
    assert (found.cgroup, found.driver, found.kubelet_formula, found.system_slice) == ("v2", "systemd", "linear", 20)
    assert [(handler, str(run)) for handler, run in found.runtimes] == [
        ("crun-old", "crun 1.21 (linear)"),
        ("default", "runc 1.3.6 (quadratic)"),
        ("odd", "linear"),
    ]
    assert found.root == (("docker", 100),)
    assert found.basis_of("cgroup").confidence == "stated"
    assert found.basis_of("cgroup").source == "s.yaml rule 1"


def test_later_rules_win_key_by_key() -> None:
    found = state(
        "- {cgroup: v1, runtimes: {default: runc 1.1.5, crun: crun 1.21}}\n"
        "- {match: {labels: {pool: blue}}, cgroup: v2, runtimes: {default: runc 1.3.6}}",
        labels={"pool": "blue"},
    )
    assert found.cgroup == "v2"
    assert [str(run) for _, run in found.runtimes] == ["crun 1.21 (linear)", "runc 1.3.6 (quadratic)"]
    assert found.basis_of("runtime:crun").source == "s.yaml rule 1"
    assert found.basis_of("runtime:default").source == "s.yaml rule 2"


@pytest.mark.parametrize("match", ["{name: other-*}", "{labels: {pool: red}}", "{name: n1, labels: {pool: red}}"])
def test_a_rule_that_does_not_match_says_nothing(match: str) -> None:
    found = state(f"- {{match: {match}, cgroup: v2}}", labels={"pool": "blue"})
    assert found.cgroup is None
    assert found.basis_of("cgroup").confidence == "unknown"


def test_a_version_keeps_its_last_zero() -> None:
    assert state("- {kubelet: 1.30}", kubelet="").kubelet_version == (1, 30, 0)
    found = state("- {runtimes: {default: crun 1.20}}").runtime("default")
    assert str(found) == "crun 1.20 (linear)"


def test_unknown_stays_unknown_and_is_every_possibility() -> None:
    (each,) = cluster(node()).nodes
    cases = setups(reading.defaults(each.kubelet_version), ["default"])
    assert [(each.when, each.places, each.setup.system_slice) for each in cases] == [
        ("cgroup v2, linear runtime", (0, 0), 100),
        ("cgroup v2, quadratic runtime", (0, 1), 100),
        ("cgroup v1, linear runtime", (1, 0), 1024),
        ("cgroup v1, quadratic runtime", (1, 1), 1024),
    ]
    newer = setups(reading.defaults("v1.34.0"), ["default"])
    assert [each.when for each in newer[:2]] == ["cgroup v2, quadratic runtime", "cgroup v2, linear runtime"]


def test_a_handler_that_no_pod_uses_is_no_question() -> None:
    found = state("- {cgroup: v2, runtimes: {default: runc 1.3.6}}")
    assert [each.when for each in setups(found, ["default"])] == [""]
    assert [each.when for each in setups(found, ["default", "crun"])] == ["linear runtime", "quadratic runtime"]


def test_a_new_kubelet_is_probably_on_v2() -> None:
    found = state("- {driver: systemd}", kubelet="v1.36.2")
    assert (found.cgroup, found.basis_of("cgroup")) == (
        "v2",
        Basis(
            "probable",
            "node.status.nodeInfo.kubeletVersion: kubelet 1.36.2 refuses cgroup v1 unless failCgroupV1 is false",
            "failCgroupV1: false",
        ),
    )
    assert found.hints([]) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cgroup: v2", "s.yaml is a mapping; write a list of rules: - {match: {name: worker-*}, cgroup: v2}"),
        (
            "exceptions: []",
            "s.yaml is a mapping; write a list of rules: - {match: {name: worker-*}, cgroup: v2}; if it is a policy, give it "
            "with --policy",
        ),
        ("", "s.yaml is empty; write a list of rules: - {match: {name: worker-*}, cgroup: v2}"),
        ("[]", "s.yaml is empty; write a list of rules: - {match: {name: worker-*}, cgroup: v2}"),
        ("v2", "s.yaml is no list; write a list of rules: - {match: {name: worker-*}, cgroup: v2}"),
        ("- {cgruop: v2}", "s.yaml rule 1: there is no key 'cgruop'; did you mean cgroup?"),
        ("- {cgroup: v3}", "s.yaml rule 1: cgroup: 'v3' is not one of v1, v2"),
        ("- {cgroup: v1}\n- {driver: sytemd}", "s.yaml rule 2: driver: 'sytemd' is not one of systemd, cgroupfs"),
        ("- {match: {nam: x}, cgroup: v1}", "s.yaml rule 1: match: there is no key 'nam'; did you mean name?"),
        (
            "- {match: {}, cgroup: v1}",
            "s.yaml rule 1: match is empty; give it a name or labels, or leave it out to match every node",
        ),
        (
            "- {match: {name: a}}",
            "s.yaml rule 1 says nothing of its nodes; add one of cgroup, driver, kubelet, system_slice, runtimes, root, set_by",
        ),
        (
            "- 5",
            "s.yaml rule 1 must hold match, cgroup, driver, kubelet, system_slice, runtimes, root, set_by, not '5'",
        ),
        (
            "- {kubelet: linear 1.35 quadratic}",
            "s.yaml rule 1: kubelet: 'quadratic' is one too many; write a formula, a version, or one of each",
        ),
        (
            "- {kubelet: 1.34 1.35}",
            "s.yaml rule 1: kubelet: '1.35' is one too many; write a formula, a version, or one of each",
        ),
        (
            "- {kubelet: fast}",
            "s.yaml rule 1: kubelet: 'fast' is neither linear, quadratic, openshift, upstream nor a version such as 1.35.2",
        ),
        (
            "- {cgroup: v2, system_slice: -1}",
            "s.yaml rule 1: system_slice: '-1' is neither shares (2..262144, cgroup v1) nor a weight (1..10000, v2)",
        ),
        ("- {runtimes: runc}", "s.yaml rule 1: runtimes must be a mapping of names to values, not 'runc'"),
        ("- {runtimes: {default: [a]}}", "s.yaml rule 1: runtimes: default must be a single value, not ['a']"),
        (
            "- {runtimes: {default: runc 1.3}}",
            "s.yaml rule 1: runtimes: default: runc 1.3 holds both formulas (1.3.2 is the first quadratic one): "
            "give the full version",
        ),
        ("- {root: {system.slice: 5}}", "s.yaml rule 1: root: system.slice has a key of its own: write system_slice"),
        (
            "- {root: {kubepods.slice: 5}}",
            "s.yaml rule 1: root: 'kubepods.slice' is not a top-level cgroup beside kubepods, such as docker or user.slice",
        ),
        (
            "- {match: {labels: {}}, cgroup: v1}",
            "s.yaml rule 1: match: labels is empty, which every node fits; name a label, or leave it out",
        ),
        (
            "- {cgroup: v2, root: {docker: 100, /docker: 50}}",
            "s.yaml rule 1: root: docker stands twice, with and without /; leave one out",
        ),
        ("- {kubelet: }", "s.yaml rule 1: kubelet is empty; write linear, quadratic or a version such as 1.35.2"),
        (
            "- {cgroup: v2}\n---\n- {cgroup: v1}",
            "s.yaml is not valid YAML at line 2: a second document begins; correct it there",
        ),
        ("- {cgroup: [v2}", "s.yaml is not valid YAML at line 1: did not find expected ',' or ']'; correct it there"),
    ],
)
def test_a_typo_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        states.parse(text, "s.yaml")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "- {system_slice: 20}",
            "test rule 1: system_slice is given for node n1 but not its cgroup version, and without it the unit "
            "(shares on v1, weight on v2) is open: add cgroup: v1 or v2",
        ),
        (
            "- {cgroup: v2, system_slice: 10001}",
            "test rule 1: system_slice: 10001 is no weight (1..10000) for the v2 node n1",
        ),
        (
            "- {cgroup: v1, root: {docker: 1}}",
            "test rule 1: root: docker: 1 is no shares (2..262144) for the v1 node n1",
        ),
    ],
)
def test_a_value_without_a_sensible_unit_is_refused(rule: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        compared(cluster(node()), rule)
    assert str(caught.value) == message


def test_a_measured_version_gives_a_value_its_unit() -> None:
    objects = with_answers(cluster(node()), {"n1": answers(config=None)})
    (found,) = compared(objects, "- {system_slice: 20}")
    assert (found.state.cgroup, found.state.system_slice) == ("v2", 20)
    with pytest.raises(UsageError, match="system_slice: 10001 is no weight"):
        compared(objects, "- {system_slice: 10001}")


@pytest.mark.parametrize(
    ("said", "confidence"),
    [("1.20.1", "probable"), ("1.33.5", "likely"), ("linear", "stated"), ("linear 1.20.1", "stated")],
)
def test_a_version_says_nothing_more_of_the_formula_than_the_version_does(said: str, confidence: str) -> None:
    assert state(f"- {{kubelet: {said}}}", kubelet="unknown").basis_of("kubelet").confidence == confidence


@pytest.mark.parametrize(
    ("own", "said", "stands", "contradicted"),
    [
        ("v1.33.13", "1.34.1", (1, 33, 13), True),
        ("v1.34.2", "1.35", (1, 34, 2), True),
        ("v1.34.2", "1.34", (1, 34, 2), False),
        ("v1.34.2", "linear 1.34.2", (1, 34, 2), False),
        ("", "1.34.1", (1, 34, 1), False),
    ],
)
def test_a_node_knows_its_kubelets_version_better(
    own: str, said: str, stands: tuple[int, int, int], contradicted: bool
) -> None:
    """A limit of 77m stops a pod on v1 under a kubelet that does not round, and the file's word hid or made that."""
    found = state(f"- {{cgroup: v1, kubelet: {said}}}", kubelet=own)
    assert found.kubelet_version == stands
    words = f"kubelet: s.yaml rule 1 says {said.removesuffix('.0')}"
    assert [each.startswith(words) for each in found.contradictions] == [True] * contradicted
    if contradicted:
        assert found.contradictions[0].endswith(
            f", but node.status.nodeInfo.kubeletVersion says {own.removeprefix('v')}"
        )


def test_a_kubelet_1_33_without_its_patch_may_round_or_not() -> None:
    with pytest.raises(UsageError) as caught:
        state("- {kubelet: 1.33}")
    assert str(caught.value) == (
        "s.yaml rule 1: kubelet: 1.33 rounds a pod's quota from 1.33.8 on, and not before: give the full version"
    )
    with pytest.raises(UsageError) as caught:
        scenario.parse("v2,kubelet=v1.33")
    assert str(caught.value) == (
        "--to: kubelet 1.33 rounds a pod's quota from 1.33.8 on, and not before: give the full version, as in kubelet=1.33.8"
    )
    assert scenario.parse("kubelet=1.33.0").kubelet == (1, 33, 0)


def test_a_value_at_the_root_has_the_unit_of_the_version_it_was_given_for() -> None:
    """2048 shares are twice the default, and the weight 2048 twenty times."""
    found = state("- {cgroup: v1, system_slice: 2048, root: {docker: 512}}\n- {match: {name: n*}, cgroup: v2}")
    assert (found.cgroup, found.system_slice, found.root) == ("v2", None, ())
    assert [found.basis_of(about).confidence for about in ("system_slice", "root")] == ["probable", "probable"]
    assert found.contradictions == ("root: values given for cgroup v1 are left out, as s.yaml rule 2 says v2",)
    again = state("- {cgroup: v1, system_slice: 2048}\n- {cgroup: v2, system_slice: 200}")
    assert (again.system_slice, again.basis_of("system_slice").source) == (200, "s.yaml rule 2")
    same = state("- {system_slice: 200}\n- {cgroup: v2}\n- {cgroup: v2, driver: systemd}")
    assert (same.system_slice, same.contradictions) == (200, ())


def test_what_is_nested_too_deeply_to_be_shown_is_still_refused_in_words() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(UsageError, match=r"^rule 1 must be a single value, not \[\[\[\.\.\.\]\]\]$"):
        settings.text(nested, "rule 1")


def test_aliases_are_not_followed_to_all_they_stand_for() -> None:
    bomb = "x"
    for level in range(15):
        bomb = f"[&a{level} {bomb}, *a{level}]"
    with pytest.raises(UsageError) as caught:
        states.parse(f"- cgroup: {bomb}", "s.yaml")
    assert str(caught.value) == "s.yaml rule 1: cgroup must be a single value, not [[[...], [...]], [[...], [...]]]"


def formula(name: str, formula: Any, started: str, handler: str = "default") -> WeighedContainer:
    return WeighedContainer("default", name, "app", handler, formula, 59, 512, started)


def root_value(rules: str) -> int | None:
    (comparison,) = compared(cluster(node(), pod("p", container("c", "1"))), rules, "v2")
    return comparison.state.system_slice


@pytest.mark.parametrize(
    ("rules", "value"),
    [
        ("- {cgroup: v2, system_slice: 1}", 1),
        ("- {cgroup: v2, system_slice: 10000}", 10000),
        ("- {cgroup: v1, system_slice: 2}", 2),
        ("- {cgroup: v1, system_slice: 262144}", 262144),
        ("- {cgroup: v1, system_slice: 100000}", 100000),
    ],
)
def test_the_ends_of_what_system_slice_may_hold(rules: str, value: int) -> None:
    assert root_value(rules) == value


@pytest.mark.parametrize(
    "rules",
    [
        "- {cgroup: v2, system_slice: 0}",
        "- {cgroup: v2, system_slice: 10001}",
        "- {cgroup: v1, system_slice: 1}",
        "- {cgroup: v1, system_slice: 262145}",
        "- {cgroup: v1, system_slice: '\u0661\u0662'}",
        "- {cgroup: v1, system_slice: '0000100'}",
        "- {cgroup: v1, system_slice: ten}",
    ],
)
def test_beyond_the_ends_of_what_system_slice_may_hold(rules: str) -> None:
    with pytest.raises(UsageError):
        root_value(rules)


def test_a_rule_may_say_the_kubelets_formula_and_version_at_once() -> None:
    for formula in ("linear", "quadratic"):
        (rule,) = states.parse(f"- {{kubelet: {formula} 1.35.2}}", "test")
        assert (rule.kubelet_formula, str(rule.kubelet_version)) == (formula, "1.35.2")


@pytest.mark.parametrize("name", ["a/b", "/", "kubepods", "kubepods.slice", "/system.slice/"])
def test_what_is_no_cgroup_beside_kubepods(name: str) -> None:
    with pytest.raises(UsageError):
        states.parse(f"- {{cgroup: v2, root: {{{name}: 50}}}}", "test")


def test_runtimes_of_several_rules_are_in_order_of_their_handlers() -> None:
    rules = "- {cgroup: v2, runtimes: {z: runc 1.1.15}}\n- {runtimes: {a: runc 1.3.6, m: crun 1.28}}"
    (comparison,) = compared(cluster(node(), pod("p", container("c", "1"))), rules, "v2")
    assert [handler for handler, _ in comparison.state.runtimes] == ["a", "m", "z"]


def test_a_rule_for_a_node_is_matched_with_that_nodes_handlers_only() -> None:
    objects = cluster(node(), node("n2"), pod("p", container("c", "1"), on="n2", runtimeClassName="special"))
    rules = "- {cgroup: v2, runtimes: {default: linear}}\n- {match: {name: n1}, runtimes: {special: linear}}"
    assert audited(objects, rules, "v2").coverage.unmatched == (
        "test rule 2 names the handler special, which no matching node has; there is default",
    )
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": ""}, {"name": "kata"}]
    assert audited(cluster(raw), "- {runtimes: {runc: linear}}", "v2").coverage.unmatched == (
        "test rule 1 names the handler runc, which no matching node has; there is default, kata",
    )
    nowhere = "- {cgroup: v2, runtimes: {default: linear}}\n- {match: {name: n9}, runtimes: {special: linear}}"
    assert audited(objects, nowhere, "v2").coverage.unmatched == ("test rule 2 matches no node",)
