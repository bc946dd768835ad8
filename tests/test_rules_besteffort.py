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
)


def test_207_besteffort_gains_on_v2() -> None:
    (finding,) = of_rule(recorded_audit(), "CGA207").values()
    assert finding.subject.name == "worker-c"


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
