"""`report` writes what the first run would have written, and says what is no audit."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect.snapshot import encode, pack
from kubectl_cgaudit.errors import InputError
from kubectl_cgaudit.judge.audit import Audit, Known
from kubectl_cgaudit.judge.saved import _problems, load
from kubectl_cgaudit.report.formats import FORMATS
from tests.hostile import HOSTILE, hand_made
from tests.support import (
    RECORDED_FLAGS,
    audited,
    cluster,
    container,
    node,
    pod,
    recorded,
    recorded_audit,
    recorded_blind,
    rendered,
)
from tests.test_baseline import AUDIT


def _outputs(folder: Path) -> list[str]:
    folder.mkdir()
    return [word for name in FORMATS for word in ("-o", f"{name}={folder / name}")]


def test_every_format_is_the_same_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert run([*RECORDED_FLAGS, *_outputs(tmp_path / "first")]) == 0
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert run(["report", str(tmp_path / "first" / "json"), *_outputs(tmp_path / "again")]) == 0
    for name in FORMATS:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()


def _sound(audit: Audit) -> Audit:
    """A hand-made audit with what every real one says of its nodes."""
    known = {**audit.nodes[0].known, "system_slice": Known("default", "probable", "x")}
    return replace(audit, nodes=(replace(audit.nodes[0], known=known),))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_strings_survive_the_json(name: str) -> None:
    audit = _sound(hand_made(name))
    assert load(rendered("json", audit).encode(), "x") == audit


@pytest.mark.parametrize("audit", [recorded_audit(), audited(recorded_blind())])
def test_a_real_audit_is_the_same_json_again(audit: object) -> None:
    text = rendered("json", audit)  # type: ignore[arg-type]
    assert rendered("json", load(text.encode(), "x")) == text


def test_gzip_and_an_incomplete_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(rendered("json", _sound(hand_made(complete=False))).encode()))
    assert run(["report", str(path)]) == 3
    assert "INCOMPLETE" in capsys.readouterr().out


def test_an_audit_of_a_newer_minor_version_is_written_again_as_what_is_read_of_it() -> None:
    today = recorded_audit()
    newer = json.loads(rendered("json", today)) | {"schemaVersion": "2.99", "added": [1]}
    assert rendered("json", load(json.dumps(newer).encode(), "x")) == rendered("json", today)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "x.json is empty; save an audit with: kubectl cgaudit -o json=FILE"),
        ("{", "x.json is not valid JSON: Input data was truncated; save an audit with: kubectl cgaudit -o json=FILE"),
        (
            '{"kind": "List", "items": []}',
            "x.json holds no audit (it has no schemaVersion); save an audit with: kubectl cgaudit -o json=FILE",
        ),
        ("[]", "x.json holds no audit (it has no schemaVersion); save an audit with: kubectl cgaudit -o json=FILE"),
        (
            '{"schemaVersion": "3.0"}',
            "x.json has schema version 3.0, and this cgaudit reads 2.0; use the release that wrote it",
        ),
        (
            '{"schemaVersion": "1.1"}',
            "x.json has schema version 1.1, and this cgaudit reads 2.0; use the release that wrote it",
        ),
        (
            '{"schemaVersion": "2.0"}',
            "x.json is a damaged audit: Object missing required field `toolVersion`; save an audit with: "
            "kubectl cgaudit -o json=FILE",
        ),
    ],
)
def test_what_is_no_audit(
    content: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text(content)
    assert run(["report", "x.json"]) == 1
    assert capsys.readouterr().err == f"error: {error}\n"


@pytest.mark.parametrize("words", [["report", "s.json.gz"], [*RECORDED_FLAGS, "--baseline", "s.json.gz"]])
def test_a_snapshot_is_no_audit(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json.gz").write_bytes(pack(encode(recorded())))
    assert run(words) == 1
    assert capsys.readouterr().err == (
        "error: s.json.gz is a snapshot of a cluster, not an audit; "
        "audit it with: kubectl cgaudit -f SNAPSHOT -o json=FILE\n"
    )


def test_no_such_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "none.json"]) == 1
    assert capsys.readouterr().err == "error: none.json cannot be read: No such file or directory; check the path\n"


def test_parts_that_do_not_fit_together_are_an_error_and_no_traceback() -> None:
    audit = _sound(hand_made(when=("cgroup v2", "cgroup v1")))
    (node, *_), (workload, *_) = audit.nodes, audit.workloads
    (pod, *_) = workload.pods
    damaged = {
        "of node web it does not say cgroup": replace(audit, nodes=(replace(node, known={}),)),
        "pod web/web is on a node that is not there": replace(audit, nodes=()),
        "web/one speaks of a pod that it does not have": replace(
            audit, workloads=(replace(workload, pods=(replace(pod, name="other"),)),)
        ),
        "pod web/web has other cases than its node": replace(audit, nodes=(replace(node, others=()), *audit.nodes[1:])),
    }
    for problem, broken in damaged.items():
        with pytest.raises(InputError, match=f"^x is a damaged audit: {problem}; save an audit"):
            load(rendered("json", broken).encode(), "x")


Change = Callable[[Any], None]


def _moments(audit: Any) -> list[Any]:
    placed = [each for workload in audit["workloads"] for pod in workload["pods"] for each in (pod, *pod["containers"])]
    return [case[when] for each in placed for case in (each, *each["cases"]) for when in ("now", "after")]


def _everywhere(field: str, value: object) -> Change:
    def change(audit: Any) -> None:
        for each in _moments(audit):
            each[field] = value

    return change


def _of_nodes(field: str, value: object) -> Change:
    return lambda audit: audit["nodes"][0]["cases"][-1]["after"].update({field: value})


def _handlers(audit: Any) -> None:
    case = audit["nodes"][0]["cases"][-1]
    for moment in (case["now"], case["after"]):
        moment["runtimes"].pop("default")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            _everywhere("againstSystem", -1.0),
            r"Expected `float` >= 0.0 - at `$.workloads[0].pods[0].now.ag",
        ),
        (_everywhere("againstSystem", 1e-300), "pod default/api has a share that is less than the least that is shown"),
        (_everywhere("share", 4e-10), "pod default/api has a share that is less than the least that is shown"),
        (_everywhere("share", 1.5), "Expected `float` <= 1.0 - at `$.workloads[0].pods[0].now.share`"),
        (_everywhere("value", 0), "Expected `int` >= 1 - at `$.workloads[0].pods[0].now.value`"),
        (_everywhere("value", 262145), "Expected `int` <= 262144 - at `$.workloads[0].pods[0].now.value`"),
        (_of_nodes("podsPerSystem", 0), "Expected `float` > 1e-06 - at `$.nodes[0].cases[0].after.podsPerSystem`"),
        (_of_nodes("kubepods", 10**30), "Expected `int` <= 262144 - at `$.nodes[0].cases[0].after.kubepods`"),
        (_handlers, "node n1 has other handlers in one case than in another, or before than after"),
        (lambda audit: audit["weights"][0].update(before=-1), "Expected `int` >= 1 - at `$.weights[0].before`"),
        (lambda audit: audit["weights"][0].update(containers=0), "Expected `int` >= 1 - at `$.weights[0].containers`"),
    ],
)
def test_numbers_that_no_node_has_are_an_error_and_no_traceback(change: Change, problem: str) -> None:
    placed = pod("api", container("app", "1"), container("log", "100m"))
    found = audited(cluster(node(), placed), "- {runtimes: {default: runc 1.3.6}}")
    written = json.loads(rendered("json", found))
    assert rendered("json", load(json.dumps(written).encode(), "x")) == rendered("json", found)
    change(written)
    with pytest.raises(InputError, match=f"^x is a damaged audit: {re.escape(problem)}"):
        load(json.dumps(written).encode(), "x")


def test_a_damaged_audit_is_refused_where_any_of_its_numbers_is_of_a_pod_it_does_not_have() -> None:
    audit = AUDIT
    assert list(_problems(audit)) == []
    place = next(n for n, each in enumerate(audit.workloads) if each.inside_pod and each.against_system and each.share)
    workload = audit.workloads[place]
    for name in ("share", "against_system", "against_system_best", "inside_pod"):
        bad = replace(workload, **{name: replace(getattr(workload, name), pod="nobody")})
        workloads = (*audit.workloads[:place], bad, *audit.workloads[place + 1 :])
        assert list(_problems(replace(audit, workloads=workloads))) == [
            f"{workload.title} speaks of a pod that it does not have"
        ], name
    first = workload.pods[0]
    for pods in (
        replace(
            first, containers=(replace(first.containers[0], others=first.containers[0].cases), *first.containers[1:])
        ),
        replace(first, others=first.cases),
    ):
        bad = replace(workload, pods=(pods, *list(workload.pods)[1:]))
        workloads = (*audit.workloads[:place], bad, *audit.workloads[place + 1 :])
        assert list(_problems(replace(audit, workloads=workloads))) == [
            f"pod {workload.namespace}/{first.name} has other cases than its node"
        ]
    one = audit.nodes[0]
    case = one.cases[0]
    other = replace(case, after=replace(case.after, runtimes={"x": "runc 1.3.6 (quadratic)"}))
    damaged = replace(audit, nodes=(replace(one, others=(other,)), *audit.nodes[1:]))
    assert f"node {one.name} has other handlers in one case than in another, or before than after" in list(
        _problems(damaged)
    )
