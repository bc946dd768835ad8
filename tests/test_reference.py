"""The tool against the reference model: every number of the tree, every case and every effect of random clusters."""

import ast
import json
from collections import defaultdict
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_cgaudit.audit.model import EFFECTS
from kubectl_cgaudit.cli.main import run
from tests import reference
from tests.reference.answers import differences
from tests.reference.audit import audit
from tests.reference.clusters import KINDS, Cluster, Kind, cluster
from tests.support import container, listed, node, pod

SEEDS = {"known": range(80), "unknowns": range(60), "file": range(60), "platforms": range(80)}
CLUSTERS = [(kind, seed) for kind in KINDS for seed in SEEDS[kind]]
MOST = 20
"""Of the differences in one cluster that are printed."""


def audited(of: Cluster, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the tool says of a cluster."""
    (folder / "cluster.json").write_text(listed(*of.objects))
    (folder / "states.yaml").write_text(yaml.safe_dump(of.states))
    target = of.target
    if isinstance(target, list):
        target = str(folder / "target.yaml")
        Path(target).write_text(yaml.safe_dump(of.target))
    flags = ["-f", str(folder / "cluster.json"), "--states", str(folder / "states.yaml"), "--to", target, "-o", "json"]
    code = run(flags)
    printed = capsys.readouterr()
    assert code == 0
    assert all(line.startswith("check what was said: ") for line in printed.err.splitlines())
    return nested(json.loads(printed.out))


def nested(found: dict[str, Any]) -> dict[str, Any]:
    """The JSON of an audit in the shape of the reference model: pods under workloads, containers under pods."""
    for each in found["nodes"]:
        each["cases"] = [case | {"now": case["before"]} for case in each["cases"]]
    pods: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in found["containers"]:
        of_workload = pods[row["namespace"], row["workload_kind"], row["workload"]]
        pod = of_workload.setdefault(
            row["pod"],
            {key: row[key] for key in ("node", "qos", "handler", "effects")}
            | {"name": row["pod"], "cases": cases(row, "pod_"), "containers": []},
        )
        pod["containers"].append({"name": row["container"], "cases": cases(row, "")})
    for workload in found["workloads"]:
        own = pods[workload["namespace"], workload["kind"], workload["name"]]
        workload["pods"] = list(own.values())
    return found


def cases(row: dict[str, Any], of: str) -> list[dict[str, Any]]:
    return [
        {
            "when": case["when"],
            "stops": case["stops"],
            "now": moment(case, "before", of),
            "after": moment(case, "after", of),
        }
        for case in (row, *row["cases"])
    ]


def moment(case: dict[str, Any], at: str, of: str) -> dict[str, Any]:
    return {
        "version": case[f"{at}_version"],
        "value": case[f"{at}_{of}value"],
        "quotaUs": case[f"{at}_{of}quota_us"],
        "inPod": None if of else case[f"{at}_in_pod"],
        "share": case[f"{at}_{of}share"],
        "againstSystem": case[f"{at}_{of}against_system"],
    }


@pytest.mark.parametrize(("kind", "seed"), CLUSTERS)
def test_the_tool_says_what_the_reference_model_says(
    kind: Kind, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = cluster(kind, seed)
    found = differences(audit(of), audited(of, tmp_path, capsys))
    heading = f"seed {seed} of {kind}, --to {of.target}: {len(found)} differences"
    assert found == [], "\n".join([heading, *found[:MOST]])


SMALL = Cluster(
    nodes=[node()],
    pods=[pod("p", container("app", "1"), container("side", "50m", "77m"))],
    runtime_classes=[],
    states=[{"runtimes": {"default": "runc 1.1.15"}}],
    target="v2",
)
IN_P = ("workloads", 0, "pods", 0)


@pytest.mark.parametrize(
    ("place", "wrong", "named"),
    [
        (("nodes", 0, "cases", 1, "stops"), True, "node n1, if cgroup v1, stops: False by the reference model, True"),
        (("nodes", 0, "cases", 0, "now", "kubepods"), 156, "node n1, if cgroup v2, now, kubepods: 157 by"),
        (("workloads", 0, "effects"), ["gains"], "workload Pod default/p, effects: ['nominal', 'unknown'] by"),
        ((*IN_P, "effects"), ["unknown"], "node n1, pod default/p, effects: ['nominal', 'unknown'] by"),
        (
            (*IN_P, "cases", 1, "after", "share"),
            0.610894943,
            "node n1, pod default/p, if cgroup v1, after, share: 0.61089494",
        ),
        (
            (*IN_P, "containers", 1, "cases", 0, "after", "quotaUs"),
            8000,
            "node n1, pod default/p, container side, if cgroup v2, after, quotaUs: 7700 by the reference model, 8000",
        ),
        ((*IN_P, "containers"), [], "node n1, pod default/p, container app, cases: ['cgroup v1', 'cgroup v2'] by"),
    ],
)
def test_a_wrong_answer_is_named(
    place: tuple[str | int, ...], wrong: Any, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = audited(SMALL, tmp_path, capsys)
    assert differences(audit(SMALL), found) == []
    *way, last = place
    reduce(getitem, way, found)[last] = wrong
    first, *_ = differences(audit(SMALL), found)
    assert first.startswith(named)


def test_the_clusters_have_every_effect_and_every_open_question() -> None:
    effects, words, lost = set(), set(), 0
    for kind, seed in CLUSTERS:
        said = audit(cluster(kind, seed))
        cases = [case for node in said["nodes"] for case in node["cases"]]
        lost += sum(case["stops"] for case in cases)
        words |= {word for case in cases for word in case["when"].split(", ")}
        pods = [pod for workload in said["workloads"] for pod in workload["pods"]]
        effects |= {effect for pod in pods for effect in pod["effects"] or ["none"]}
    assert effects == set(EFFECTS)
    assert words == {
        "",
        "reserve on system.slice",
        "no reserve on system.slice",
        "management pods counted",
        "management pods not counted",
        "cgroup v1",
        "cgroup v2",
        "linear runtime",
        "quadratic runtime",
        "unnamed runtime is crun",
        "unnamed runtime is runc",
        "unnamed runtime is youki",
        "systemd set system.slice",
        "a kubelet set system.slice",
        "systemd set system.slice and docker",
        "a kubelet set system.slice and docker",
    }
    assert lost > 20


def test_the_reference_model_knows_nothing_of_the_tool() -> None:
    modules = sorted(Path(reference.__file__).parent.glob("*.py"))
    assert len(modules) > 10
    for path in modules:
        for part in ast.walk(ast.parse(path.read_text())):
            names = [part.module or "."] if isinstance(part, ast.ImportFrom) else []
            names += [each.name for each in part.names] if isinstance(part, ast.Import) else []
            assert [name for name in names if name.startswith(("kubectl_cgaudit", "tools", "."))] == [], path.name
            assert [name for name in names if name.startswith("tests") and "tests.reference." not in name] == [], (
                path.name
            )
