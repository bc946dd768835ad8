"""`-o junit` against Jenkins' schema: what is open or was not read never passes."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite
from lxml import etree
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import AtLeast, Audit, Graver
from kubectl_cgaudit.report import junit
from kubectl_cgaudit.report.options import Options
from tests.hostile import HOSTILE, everywhere, hand_made
from tests.pages_support import blind, recorded, small
from tests.support import container, node, pod

XSD = etree.XMLSchema(etree.parse(Path(__file__).parent / "schemas" / "junit-10.xsd"))
Cases = dict[tuple[str, str], TestCase]


def half_read() -> Audit:
    return small(node(), pod("p", container("c", "1"), on="gone"), pod("q", container("c", "1")))


def written(audit: Audit) -> str:
    out = io.StringIO()
    junit.write(SimpleNamespace(audit=audit), out, Options())  # type: ignore[arg-type]
    return out.getvalue()


def suites(audit: Audit) -> dict[str, TestSuite]:
    text = written(audit).encode()
    XSD.assertValid(etree.fromstring(text))
    return {suite.name.split()[0]: suite for suite in JUnitXml.fromstring(text)}


def cases(audit: Audit) -> Cases:
    found = [(suite, case) for suite in suites(audit).values() for case in suite]
    assert len({(case.classname, case.name) for _, case in found}) == len(found)
    return {(str(case.classname), str(case.name)): case for _, case in found}


def ended(found: Cases, *types: type) -> list[tuple[str, str]]:
    return [key for key, case in found.items() if any(isinstance(each, types) for each in case.result)]


def outcome(audit: Audit) -> Any:
    """The result of the hand-made workload under CGA201; None where it passes."""
    result = cases(audit)["CGA201.web", "web web"].result
    return result[0] if result else None


def test_the_schema_refuses_what_is_wrong() -> None:
    assert not XSD.validate(etree.fromstring(written(recorded()).replace("classname", "class_").encode()))


def test_the_recorded_cluster() -> None:
    found = suites(recorded())
    counts = {rule: (suite.tests, suite.failures, suite.errors) for rule, suite in found.items()}
    workloads, nodes = (15, 0, 0), (3, 0, 0)
    assert counts == {
        "CGA001": (1, 0, 0),
        **dict.fromkeys(("CGA101", "CGA102", "CGA103", "CGA202", "CGA207"), nodes),
        **dict.fromkeys(("CGA203", "CGA205", "CGA206", "CGA301", "CGA302", "CGA401"), workloads),
        "CGA201": (15, 5, 0),
        "CGA204": (15, 2, 0),
    }
    (failure,) = cases(recorded())["CGA201.shop", "Deployment checkout"].result
    assert isinstance(failure, Failure)
    assert failure.type == "high"
    assert 0 < len(str(failure.message)) < 400
    assert str(failure.text) == (
        f"high CGA201 (stated): {failure.message} Actions: system-weight:worker-c. "
        "See https://github.com/kubectl-cgaudit/kubectl-cgaudit/blob/main/docs/findings/CGA201.md"
    )
    assert written(recorded()).count('timestamp="2026-01-30T12:00:00Z"') == 14


def test_the_counts_of_the_whole_are_the_sums() -> None:
    root = etree.fromstring(written(blind()).encode())
    assert {key: root.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": str(len(root.findall(".//testcase"))),
        "failures": str(len(root.findall(".//failure"))),
        "errors": str(len(root.findall(".//error"))),
    }
    assert int(root.get("errors") or 0) > 0


def test_low_findings_pass_and_are_told() -> None:
    case = cases(recorded())["CGA205.platform", "Pod debug-shell"]
    assert case.result == []
    assert str(case.system_out).startswith("low CGA205 (stated): ")


def test_what_hangs_on_an_open_case_is_an_error_and_what_is_silent_never_passes() -> None:
    found = cases(blind())
    bad = set(ended(found, Failure, Error))
    for workload in blind().workloads:
        for rule in ("CGA201", "CGA203", "CGA204", "CGA205", "CGA206", "CGA301", "CGA302", "CGA401"):
            assert (f"{rule}.{workload.namespace}", f"{workload.kind} {workload.name}") in bad
    for each in blind().nodes:
        for rule in ("CGA101", "CGA102", "CGA103", "CGA202", "CGA207"):
            assert (f"{rule}.node", each.name) in bad
    (hanging,) = found["CGA201.shop", "Deployment checkout"].result
    assert isinstance(hanging, Error)
    assert hanging.type == "possible"
    (settled,) = found["CGA102.node", "worker-a"].result
    assert isinstance(settled, Failure)
    (silent,) = found["CGA301.shop", "Deployment checkout"].result
    assert (silent.type, silent.message) == (
        "unknown",
        "What its nodes run is not settled, or they were not read, so this is not a pass.",
    )


@pytest.mark.parametrize(
    ("certainty", "type_"),
    [("certain", Failure), ("stated", Failure), ("likely", Failure), ("probable", Error), ("possible", Error)],
)
def test_a_medium_finding_fails_only_where_it_is_settled(certainty: Any, type_: type) -> None:
    audit = hand_made()
    finding = replace(audit.findings[0], severity="medium", certainty=certainty)
    assert isinstance(outcome(replace(audit, findings=(finding,))), type_)
    # A graver severity that is less sure does not take the failure away.
    worse = (AtLeast("high", "possible"), AtLeast("medium", certainty), AtLeast("low", "certain"))
    both = replace(finding, severity="high", certainty="possible", at_least=worse)
    assert isinstance(outcome(replace(audit, findings=(both,))), type_)


def test_a_low_finding_that_may_be_high_is_an_error() -> None:
    audit = hand_made()
    low = replace(audit.findings[0], severity="low", graver=Graver("high", "cgroup v1"), message="It loses.")
    error = outcome(replace(audit, findings=(low,)))
    assert isinstance(error, Error)
    assert error.message == "high if cgroup v1: It loses."


def test_a_node_whose_version_is_known_passes_what_asks_for_that_alone() -> None:
    found = cases(small(node(), pod("p", container("c", "1")), stated="- {cgroup: v2}", to="runtime"))
    assert found["CGA101.node", "n1"].result == []


def test_what_was_not_read_is_an_error() -> None:
    found = cases(half_read())
    (gap,) = found["CGA001.audit", "node gone"].result
    assert isinstance(gap, Error)
    assert (gap.type, gap.message) == (
        "incomplete",
        "node gone: 1 pod runs there, but the Node is not among what was read.",
    )
    assert ("CGA301.default", "Pod p") in ended(found, Error)
    vague = replace(recorded(), coverage=replace(recorded().coverage, complete=False))
    assert ended(cases(vague), Error) == [("CGA001.audit", "coverage")]


def test_what_is_excepted_breaks_no_build_and_is_told() -> None:
    case = cases(hand_made())["CGA302.web", "web web"]
    assert "excepted (web: web): low CGA302" in str(case.system_out or case.result[0].text)


@pytest.mark.parametrize("name", [*HOSTILE, "\x00\x01\ufffe\uffff]]>"], ids=range(len(HOSTILE) + 1))
def test_hostile_names(name: str) -> None:
    found = suites(hand_made(name, complete=False))
    assert (found["CGA001"].tests, found["CGA001"].errors) == (1, 1)
    assert (found["CGA201"].tests, found["CGA201"].failures) == (2, 1)
    suites(everywhere(hand_made(complete=False), name))
