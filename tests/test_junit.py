"""`-o junit` against Jenkins' schema: what is open or was not read never passes."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite
from lxml import etree
from msgspec.structs import replace

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.judge.audit import Audit, ExceptedFinding, Finding, Subject
from kubectl_cgaudit.report import prometheus
from tests.hostile import HOSTILE, hand_made
from tests.support import RECORDED_FLAGS, audited, cluster, container, node, pod, rendered
from tests.test_table import BLIND, RECORDED

XSD = etree.XMLSchema(etree.parse(Path(__file__).parent / "schemas" / "junit-10.xsd"))
HALF_READ = audited(cluster(node(), pod("p", container("c", "1"), on="gone"), pod("q", container("c", "1"))))
Cases = dict[tuple[str, str], TestCase]


def suites(audit: Audit) -> dict[str, TestSuite]:
    text = rendered("junit", audit)
    XSD.assertValid(etree.fromstring(text.encode()))
    return {suite.name.split()[0]: suite for suite in JUnitXml.fromstring(text.encode())}


def cases(audit: Audit) -> Cases:
    found = [(suite, case) for suite in suites(audit).values() for case in suite]
    assert len({(case.classname, case.name) for _, case in found}) == len(found)
    return {(str(case.classname), str(case.name)): case for _, case in found}


def ended(found: Cases, *types: type) -> list[tuple[str, str]]:
    return [key for key, case in found.items() if any(isinstance(each, types) for each in case.result)]


def test_the_schema_refuses_what_is_wrong() -> None:
    assert not XSD.validate(etree.fromstring(rendered("junit", RECORDED).replace("classname", "class_").encode()))


def test_the_recorded_cluster() -> None:
    found = suites(RECORDED)
    counts = {rule: (suite.tests, suite.failures, suite.errors) for rule, suite in found.items()}
    workloads, nodes = (15, 0, 0), (3, 0, 0)
    assert counts == {
        "CGA001": (1, 0, 0),
        **dict.fromkeys(("CGA101", "CGA102", "CGA103", "CGA202", "CGA207"), nodes),
        **dict.fromkeys(("CGA203", "CGA205", "CGA206", "CGA301", "CGA302", "CGA401"), workloads),
        "CGA201": (15, 5, 0),
        "CGA204": (15, 2, 0),
    }
    case = cases(RECORDED)["CGA201.shop", "Deployment checkout"]
    (failure,) = case.result
    assert isinstance(failure, Failure)
    assert failure.type == "high"
    assert failure.message == (
        "Pod shop/checkout-d5491e7e7-22276 on worker-c: 1.29 times the CPU of system.slice now, 0.492 times after (-62%); "
        "27% of the node's CPU now, 20% after, when everything wants CPU."
    )
    assert str(failure.text).startswith(
        f"high CGA201: {failure.message} Once worker-c is on cgroup v2, not before, keep the ratio of now: "
    )


def test_the_counts_of_the_whole_are_the_sums() -> None:
    root = etree.fromstring(rendered("junit", BLIND).encode())
    assert {key: root.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": str(len(root.findall(".//testcase"))),
        "failures": str(len(root.findall(".//failure"))),
        "errors": str(len(root.findall(".//error"))),
    }
    assert int(root.get("errors") or 0) > 0


def test_low_findings_pass_and_are_said() -> None:
    case = cases(RECORDED)["CGA205.platform", "Pod debug-shell"]
    assert case.result == []
    assert str(case.system_out).startswith(
        "low CGA205: Pod platform/debug-shell asks for 1m (2 shares) and gets weight 1"
    )


def test_what_is_open_never_passes() -> None:
    found = cases(BLIND)
    bad = set(ended(found, Failure, Error))
    open_ = [each for each in BLIND.workloads if "unknown" in each.effects]
    assert len(open_) == BLIND.verdict.workloads["unknown"] > 10
    for workload in open_:
        for rule in ("CGA201", "CGA203", "CGA204", "CGA205", "CGA206", "CGA301", "CGA302", "CGA401"):
            assert (f"{rule}.{workload.namespace}", f"{workload.kind} {workload.name}") in bad
    for each in BLIND.nodes:
        assert each.confidence == "unknown"
        for rule in ("CGA101", "CGA102", "CGA103", "CGA202", "CGA207"):
            assert (f"{rule}.node", each.name) in bad
    (failure,) = found["CGA201.shop", "Deployment checkout"].result
    assert str(failure.message).startswith("if cgroup v1: Pod shop/checkout-")


def test_a_node_whose_version_is_known_passes_what_asks_for_that_alone() -> None:
    found = cases(audited(cluster(node(), pod("p", container("c", "1"))), "- {cgroup: v2}", "runtime"))
    assert found["CGA101.node", "n1"].result == []
    ((open_,), (silent,)) = (found[f"{rule}.node", "n1"].result for rule in ("CGA102", "CGA202"))
    assert isinstance(open_, Failure)
    assert isinstance(silent, Error)


def test_why_it_is_no_pass_is_said_of_nodes_and_of_workloads() -> None:
    found = cases(BLIND)
    (node_,), (workload,) = found["CGA101.node", "worker-a"].result, found["CGA301.shop", "Deployment checkout"].result
    assert (node_.type, node_.message) == (
        "unknown",
        "It cannot be said: what the node runs is not known. Not a pass.",
    )
    assert (workload.type, workload.message) == (
        "unknown",
        "It cannot be said: what its nodes run is not known, or they were not read. Not a pass.",
    )


def test_what_was_not_read_is_an_error() -> None:
    found = cases(HALF_READ)
    (gap,) = found["CGA001.audit", "node gone"].result
    assert isinstance(gap, Error)
    assert (gap.type, gap.message) == (
        "incomplete",
        "node gone: 1 pod runs there, but the Node is not among what was read.",
    )
    assert ("CGA301.default", "Pod p") in ended(found, Error)
    vague = replace(RECORDED, coverage=replace(RECORDED.coverage, complete=False))
    assert ended(cases(vague), Error) == [("CGA001.audit", "coverage")]


@pytest.mark.parametrize("name", [*HOSTILE, "\x00\x01\ufffe\uffff]]>"], ids=range(len(HOSTILE) + 1))
def test_hostile_names(name: str) -> None:
    found = suites(hand_made(name, complete=False))
    assert (found["CGA001"].tests, found["CGA001"].errors) == (1, 1)
    assert (found["CGA201"].tests, found["CGA201"].failures) == (3, 1)


def test_on_the_command_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert run([*RECORDED_FLAGS, "-o", "junit"]) == 0
    text = capsys.readouterr().out
    assert text == rendered("junit", replace(RECORDED, generated_at="2023-11-14T22:13:20Z"))
    assert text.count('timestamp="2023-11-14T22:13:20Z"') == 14


OURS = hand_made("web")


(FOUND,) = OURS.findings


def other(**fields: Any) -> Finding:
    return replace(FOUND, **fields)


def elements(audit: Any) -> dict[tuple[str, str], ElementTree.Element]:
    root = ElementTree.fromstring(rendered("junit", audit))
    return {(each.get("classname", ""), each.get("name", "")): each for each in root.iter("testcase")}


def test_all_that_a_rule_says_of_one_workload_is_in_its_test_case() -> None:
    low, high = other(severity="low", seen="First."), other(severity="high", seen="Second.", when="if cgroup v1")
    case = elements(replace(OURS, findings=(low, high)))["CGA201.web", "web web"]
    (failure,) = case
    assert (failure.tag, failure.get("type"), failure.get("message")) == ("failure", "high", "if cgroup v1: Second.")
    assert failure.text is not None
    assert ["First." in failure.text, "Second." in failure.text] == [True, True]
    apart = replace(
        OURS,
        findings=(),
        known=(low,),
        excepted=(ExceptedFinding(high, "agreed", None, "p.yaml exception 1"),),
    )
    (said,) = elements(apart)["CGA201.web", "web web"]
    assert said.tag == "system-out"
    assert said.text is not None
    assert "known from the baseline: low CGA201: First." in said.text
    assert "excepted (p.yaml exception 1: agreed): high CGA201: if cgroup v1: Second." in said.text


@pytest.mark.parametrize("apart", ["known", "excepted"])
def test_what_is_set_apart_of_a_rule_that_is_none_of_ours_is_said_too(apart: str) -> None:
    strange = other(rule="X1", title="odd")
    of_it: Any = ExceptedFinding(strange, "agreed", None, "p") if apart == "excepted" else strange
    audit = replace(OURS, findings=(), **{apart: (of_it,)})
    assert suites(audit)["X1"].name == "X1 odd"
    (said,) = elements(audit)["X1.web", "web web"]
    words = "known from the baseline" if apart == "known" else "excepted (p: agreed)"
    assert (said.tag, (said.text or "").startswith(f"{words}: {FOUND.severity} X1: ")) == ("system-out", True)


def test_what_is_open_is_no_pass_under_a_rule_of_another_kind() -> None:
    """A rule about workloads that speaks of a node of which nothing is known, and the other way round."""
    low = other(severity="low", subject=Subject("node", "n1"))
    blind = replace(OURS, nodes=tuple(replace(each, name="n1", confidence="unknown") for each in OURS.nodes))
    about_node = elements(replace(blind, findings=(low,)))["CGA201.node", "n1"]
    assert [each.tag for each in about_node] == ["error"]
    stranger = replace(low, subject=Subject("node", "n2"))
    assert [each.tag for each in elements(replace(blind, findings=(stranger,)))["CGA201.node", "n2"]] == ["system-out"]
    workload = OURS.workloads[0]
    open_ = replace(OURS, workloads=(replace(workload, effects=("unknown",), confidence="unknown"),))
    subject = Subject("workload", workload.name, workload.namespace, workload.kind)
    about_workload = elements(replace(open_, findings=(other(rule="CGA101", severity="low", subject=subject),)))
    key = ("CGA101.web", f"{workload.kind} {workload.name}")
    assert [each.tag for each in about_workload[key]] == ["error"]


@pytest.mark.parametrize(("unpredicted", "tags"), [(0, []), (1, ["error"]), (2, ["error"])])
def test_a_workload_of_which_a_pod_was_not_read_passes_nothing(unpredicted: int, tags: list[str]) -> None:
    workload = replace(OURS.workloads[0], unpredicted_pods=unpredicted)
    case = elements(replace(OURS, workloads=(workload,), findings=()))["CGA301.web", f"{workload.kind} {workload.name}"]
    assert [each.tag for each in case] == tags


def test_exceptions_that_match_nothing_are_said() -> None:
    about = Subject("audit", "exception 1")
    unused = other(rule="CGA002", severity="low", subject=about)
    found = elements(replace(OURS, findings=(unused,)))
    assert [each.tag for each in found["CGA002.audit", "exception 1"]] == ["system-out"]
    assert ("CGA002.audit", "exceptions") not in found


def test_rules_of_others_are_one_beside_ours() -> None:
    mixed = replace(RECORDED, findings=(*RECORDED.findings[:3], replace(RECORDED.findings[0], rule="X1")))
    text = prometheus.render(mixed)
    assert f'cgaudit_findings{{rule="other",severity="{mixed.findings[3].severity}",to="v2+runtime"}} 1\n' in text
    assert "X1" not in text


def test_what_may_not_start_fails_under_the_rule_that_asks_for_it_and_is_no_error() -> None:
    objects = cluster(node(kubelet="v1.33.1"), pod("p", container("c", "10m", "15m")))
    audit = audited(objects, "- {cgroup: v1, runtimes: {default: linear}}", "runc=1.3.6")
    assert ended(cases(audit), Failure) == [("CGA101.node", "n1"), ("CGA301.default", "Pod p")]
    assert ended(cases(audit), Error) == []
    excepted = replace(audit, findings=())
    assert ended(cases(excepted), Error) == []
