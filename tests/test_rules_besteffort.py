"""CGA207: what BestEffort pods of a node gain."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import (
    ONE,
    V1,
    V2_LINEAR,
    audited,
    cluster,
    container,
    node,
    of_rule,
    pod,
    recorded_audit,
    the_finding,
)


def test_207_besteffort_gains_on_v2() -> None:
    (finding,) = of_rule(recorded_audit(), "CGA207").values()
    assert finding.subject.name == "worker-c"
    assert finding.seen == (
        "worker-c: its 2 BestEffort pods together can take 0.05% of the node's CPU now and 0.5% after, 9.74 times as much, "
        "when everything wants CPU: 2 of 3239 shares in kubepods now, 1 of 125 weight after."
    )
    assert finding.remedy == (
        "Keep BestEffort pods off nodes that run full. A CPU request does not take it back: each pod that has one has weight 1 "
        "or more in the Burstable slice, about what all BestEffort pods have together; but the scheduler then leaves room for it."
    )


@pytest.mark.parametrize(("request_", "each"), [("1m", "1.45%"), ("28m", "1.45%"), ("30m", "2.72%")])
def test_207_a_request_takes_nothing_back(request_: str, each: str) -> None:
    """Each of them then has about what all had together without one, 1.53%, and who has a request has less."""

    def after(*pods: dict[str, Any]) -> dict[str, float]:
        found = audited(cluster(node(), ONE, *pods), V1, "v2").workloads
        return {each.name: each.pods[0].cases[0].after.share or 0.0 for each in found}

    without = after(*(pod(f"q{number}", container("c"), qos="BestEffort") for number in range(3)))
    having = after(*(pod(f"q{number}", container("c", request_)) for number in range(3)))
    assert {f"{having[f'q{number}']:.2%}" for number in range(3)} == {each}
    assert f"{sum(without[f'q{number}'] for number in range(3)):.2%}" == "1.53%"
    assert having["p"] < without["p"]


@pytest.mark.parametrize(("request_", "names"), [(None, []), ("1", ["n1"])])
def test_207_is_about_nodes_that_have_other_pods_too(request_: str | None, names: list[str]) -> None:
    """So small a node has less kubepods on v1 than the least weight on v2: all its pods gain, whatever their class."""
    objects = [node(cpu="1m"), pod("b", container("c"), qos="BestEffort")]
    objects += [pod("p", container("c", request_))] if request_ else []
    assert sorted(of_rule(audited(cluster(*objects), V1, "v2"), "CGA207")) == names


def test_207_what_besteffort_pods_gain() -> None:
    def found(to: str, rules: str, *pods: dict[str, Any]) -> dict[str, Any]:
        return of_rule(audited(cluster(node(), *pods), rules, to), "CGA207")

    best = [pod(f"q{number}", container("c"), qos="BestEffort") for number in range(2)]
    assert found("v2", V1, ONE, *best)["n1"].seen == (
        "n1: its 2 BestEffort pods together can take 0.2% of the node's CPU now and 1.5% after, 9.79 times as much, when "
        "everything wants CPU: 2 of 1026 shares in kubepods now, 1 of 40 weight after."
    )
    assert found("v2", V1, pod("p", container("a", "20m")), best[0])["n1"].seen == (
        "n1: its BestEffort pod can take 7.3% of the node's CPU now and 31% after, 4.2 times as much, when everything wants "
        "CPU: 2 of 22 shares in kubepods now, 1 of 2 weight after."
    )
    assert found("runtime", V1, ONE, *best) == {}
    assert found("v2+runtime", V2_LINEAR, ONE, *best) == {}
    assert found("v2", V1, *best) == {}
    assert found("v2", V1, ONE) == {}


def test_207_holds_only_from_v1_to_v2_and_for_more_than_besteffort_pods() -> None:
    objects = cluster(node(), pod("p", container("a", "1")), pod("q", container("c"), qos="BestEffort"))
    assert list(of_rule(audited(objects, V1, "v2"), "CGA207")) == ["n1"]
    assert of_rule(audited(objects, V2_LINEAR, "runtime"), "CGA207") == {}
    assert of_rule(audited(objects, V1, "runtime"), "CGA207") == {}


@pytest.mark.parametrize(
    ("rules", "target"),
    [
        ("- {cgroup: v2, kubelet: quadratic}", "{kubelet: linear}"),
        (V1, "{system_slice: 2}"),
        (V1, "{cgroup: v2, system_slice: 10000}"),
    ],
    ids=["all on v2", "all on v1", "less than before"],
)
def test_207_is_no_gain_of_another_cause_and_no_loss(rules: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "to.yaml").write_text(f"- {target}")
    objects = cluster(node(), pod("p", container("a", "1")), pod("q", container("c"), qos="BestEffort"))
    assert of_rule(audited(objects, rules, str(tmp_path / "to.yaml")), "CGA207") == {}


@pytest.mark.parametrize(
    ("set_by", "severity", "when", "times"),
    [
        ("", "medium", "if a kubelet set system.slice", "12.8"),
        (", set_by: systemd", "low", "", "8.46"),
        (", set_by: kubelet", "medium", "", "12.8"),
    ],
)
def test_207_is_sure_only_where_it_is_as_severe(set_by: str, severity: str, when: str, times: str) -> None:
    pods = [pod("g", container("c", "1")), pod("b", container("c"), qos="BestEffort")]
    rules = f"- {{cgroup: v1, system_slice: 2048, runtimes: {{default: runc 1.1.5}}{set_by}}}"
    finding = the_finding("CGA207", rules, "v2", node(), *pods)
    assert (finding.severity, finding.when) == (severity, when)
    assert f", {times} times as much, when everything wants CPU: " in finding.seen
    assert finding.seen.endswith(" It is found in every other case too, with other numbers.") == bool(when)
