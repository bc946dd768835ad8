"""`diff`: which predictions came true, what moved that nobody predicted, what is new and gone; and what cannot be said."""

import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt
from msgspec.structs import replace

from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import snapshot
from kubectl_cgaudit.collect.model import Cluster, Gap
from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.compare.diff.moments import side
from kubectl_cgaudit.compare.diff.types import Diff
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.detect import target as scenario
from kubectl_cgaudit.plain import as_json, as_yaml
from kubectl_cgaudit.report import diff_html, diff_markdown, diff_table
from tests.diff_support import BOTH, GONE, MOVED, N1, A, after_rules, flat, now_of, of_nodes, only
from tests.support import STATES, V1, V2_LINEAR, cluster, container, node, pod, recorded, rendered, saved
from tests.support import audit_of as audit

"""worker-b to the quadratic runtime, worker-c to v2."""
HOSTILE = (
    "<script>alert(1)</script>",
    "</style></table><img src=x onerror=alert(1)>",
    "a|b||c",
    "\x1b[31mred\x1b[0m\u202e",
    "[x](javascript:alert(1)) @team #1",
    "line\nbreak",
)


def recorded_diff(to: str, rules_after: str, found: Cluster | None = None) -> Diff:
    before = audit(recorded(), states.load(str(STATES)), scenario.parse(to), Thresholds(), None)
    return diff(before, now_of(found or recorded(), rules_after))


def moved_for_real() -> Cluster:
    """The recorded cluster without what worker-b says of its runtimes, which contradicts that they were moved."""
    found = recorded()
    return replace(
        found, nodes=tuple(replace(each, handlers=()) if each.name == "worker-b" else each for each in found.nodes)
    )


def test_every_predicted_change_of_the_recorded_cluster_came_true() -> None:
    found = recorded_diff(str(MOVED), after_rules(), moved_for_real())
    assert of_nodes(found) == {
        ("worker-b", "runtime", "crun-old"): ("came-true", ("linear",), ("quadratic",), ("quadratic",)),
        ("worker-b", "runtime", "default"): ("came-true", ("linear",), ("quadratic",), ("quadratic",)),
        ("worker-b", "runtime", "runc-old"): ("came-true", ("linear",), ("quadratic",), ("quadratic",)),
        ("worker-c", "cgroup", ""): ("came-true", ("v1",), ("v2",), ("v2",)),
        ("worker-c", "kubepods", ""): ("came-true", ("shares 3788",), ("weight 145",), ("weight 145",)),
        ("worker-c", "system-slice", ""): ("came-true", ("shares 1024",), ("weight 100",), ("weight 100",)),
        ("worker-c", "pods-per-system", ""): ("came-true", (3.69921875,), (1.45,), (1.45,)),
    }
    rows = flat(found)
    assert {row[0] for row in rows.values()} == {"came-true"}
    predicted = audit(recorded(), states.load(str(STATES)), scenario.parse(str(MOVED)), Thresholds(), None)
    changing = {
        (workload.title, each.name, part.name if part else "")
        for workload in side(predicted).workloads
        for each in workload.pods
        for part in (None, *each.containers)
        for case in (part.cases if part else each.cases)
        if (case.before.version, case.before.value) != (case.after.version, case.after.value)
    }
    assert len(changing) == 32
    assert {key[:3] for key in rows if key[3] == "weight"} == changing
    name = "checkout-d5491e7e7-22276"
    assert rows["shop/checkout", name, "app", "weight"] == (
        "came-true",
        ("shares 1024",),
        ("weight 39",),
        ("weight 39",),
    )
    assert found.summary.workloads == {
        "unpredicted": 0,
        "otherwise": 0,
        "as-before": 0,
        "unknown": 0,
        "other-cause": 0,
        "came-true": 11,
        "unchanged": 4,
    }
    assert found.summary.sentence == (
        "Of 15 workloads in both: 11 changed as predicted; 4 as before, as predicted. Of 3 nodes in both: 2 changed as "
        "predicted; 1 as before, as predicted. Nothing moved that nobody predicted."
    )
    assert found.summary.notes == (
        "What runs now on worker-a, worker-b, worker-c is taken from the states file, not measured: what came true rests "
        "on it.",
    )


def test_two_snapshots_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "after.yaml").write_text(after_rules())
    for name in ("before.json.gz", "after.json.gz"):
        (tmp_path / name).write_bytes(snapshot.pack(snapshot.encode(recorded())))
    flags = [str(tmp_path / "before.json.gz"), str(tmp_path / "after.json.gz"), "--states", str(STATES)]
    flags += ["--states-after", str(tmp_path / "after.yaml"), "--exit-code"]
    assert run(["diff", *flags, "--to", str(MOVED)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "before: before.json.gz (snapshot of nodes.json, pods.json," in text
    assert "worker-c came-true pods : system 3.7 : 1 -> 1.45 : 1" in text
    assert "shop/checkout deploy: came-true, 1/3 pods " in text
    assert " app weight on worker-c shares 1024 -> weight 39 " in text
    assert "worker-b unknown runtime default now quadratic, in doubt" in text
    assert run(["diff", *flags]) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert "worker-a as-before runtime runc-old linear, not quadratic" in text
    assert "shop/checkout deploy: otherwise, 1/3 pods app weight on worker-c shares 1024 -> weight 39, not 100 " in text
    assert run(["diff", *flags[:-1]]) == 0


def test_an_audit_of_json_stands_for_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = audit(recorded(), states.load(str(STATES)), scenario.parse(str(MOVED)), Thresholds(), None)
    second = now_of(recorded(), after_rules())
    (tmp_path / "before.json").write_text(rendered("json", first))
    (tmp_path / "after.json").write_text(rendered("json", second))
    assert run(["diff", str(tmp_path / "before.json"), str(tmp_path / "after.json"), "-o", "json"]) == 0
    assert capsys.readouterr().out == as_json(diff(first, second))


def test_what_nobody_predicted_is_named_and_exits_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = diff(saved(cluster(N1, A), V1, "runtime"), now_of(cluster(N1, A), V2_LINEAR))
    assert of_nodes(found)["n1", "cgroup", ""] == ("unpredicted", ("v1",), ("v1",), ("v2",))
    assert flat(found)["default/a", "a", "app", "weight"] == (
        "unpredicted",
        ("shares 1024",),
        ("shares 1024",),
        ("weight 39",),
    )
    assert (only(found).outcome, found.summary.moved) == ("unpredicted", True)
    (tmp_path / "b.json").write_text(rendered("json", saved(cluster(N1, A), V1, "runtime")))
    (tmp_path / "a.json").write_text(rendered("json", now_of(cluster(N1, A), V2_LINEAR)))
    assert run(["diff", str(tmp_path / "b.json"), str(tmp_path / "a.json"), "--exit-code"]) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert "default/a pod: unpredicted, 1/1 pods " in text
    assert " app weight shares 1024 -> weight 39 " in text


def test_a_weight_of_system_slice_that_only_one_side_says_is_no_move() -> None:
    told = f"{V2_LINEAR}\n- {{system_slice: 20}}"
    for before, after in ((told, V2_LINEAR), (V2_LINEAR, told)):
        found = diff(saved(cluster(N1, A), before, "v2"), now_of(cluster(N1, A), after))
        assert {key[1]: row[0] for key, row in of_nodes(found).items()} == {
            "system-slice": "unknown",
            "pods-per-system": "unknown",
        }
        assert not found.summary.moved
        assert found.summary.notes[-1].startswith("Of n1 one side says what stands beside pods at the root")
    same = diff(saved(cluster(N1, A), told, "v2"), now_of(cluster(N1, A), told))
    assert only(same).outcome == "unchanged"


def test_a_request_that_was_changed_explains_the_difference() -> None:
    other = pod("a", container("app", "2"), container("side", "100m"))
    found = diff(saved(cluster(N1, A), V2_LINEAR, "runtime"), now_of(cluster(N1, other), BOTH))
    (changed,) = only(found).pods
    assert (
        changed.because
        == (
            "it asks for other CPU: app request 1000m limit none -> request 2000m limit none",
            "n1 has other pods now, or pods that ask for other CPU",
        )[:1]
    )
    rows = flat(found)
    assert rows["default/a", "a", "app", "weight"] == ("other-cause", ("weight 39",), ("weight 100",), ("weight 174",))
    assert rows["default/a", "a", "side", "weight"][0] == "came-true"
    assert not found.summary.moved


def test_a_request_that_was_changed_explains_what_stayed_as_it_was() -> None:
    before = saved(cluster(N1, pod("a", container("app", "1"), container("side", "100m"))), V2_LINEAR, "runtime")
    kept = diff(before, now_of(cluster(N1, pod("a", container("app", "990m"), container("side", "100m"))), V2_LINEAR))
    assert flat(kept)["default/a", "a", "app", "weight"] == (
        "other-cause",
        ("weight 39",),
        ("weight 100",),
        ("weight 39",),
    )


def test_a_debug_container_moves_nothing() -> None:
    small = pod("a", container("app", "10m"))
    debugged = pod("a", container("app", "10m"), ephemeralContainers=[{"name": "debug"}])
    debugged["status"]["ephemeralContainerStatuses"] = [{"name": "debug", "state": {"running": {}}}]
    found = diff(saved(cluster(N1, small), V2_LINEAR, "runtime"), now_of(cluster(N1, debugged), BOTH))
    assert only(found).outcome == "came-true"
    assert not found.summary.moved


def test_an_incomplete_side_exits_with_3_and_is_not_sure_of_what_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = cluster(N1, A)
    gap = Gap("pods of namespace b", "403", "ask for list")
    unread = replace(found, reading=replace(found.reading, gaps=(gap,)))
    (tmp_path / "b").write_bytes(snapshot.encode(cluster(N1, A, GONE)))
    (tmp_path / "a").write_bytes(snapshot.encode(unread))
    assert run(["diff", str(tmp_path / "b"), str(tmp_path / "a"), "-o", "json"]) == 3
    said = capsys.readouterr()
    assert said.err == "incomplete after: pods of namespace b: 403\n"
    data = json.loads(said.out)
    assert [(each["name"], each["sure"]) for each in data["goneWorkloads"]] == [("gone", False)]
    assert data["summary"]["notes"][:2] == [
        "The audit after is incomplete: pods of namespace b: 403. What is missing there is not compared.",
        "Because of that it cannot be said whether all that is shown as new or gone really is.",
    ]


def test_what_a_gap_is_called_acts_in_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = cluster(N1, A)
    unread = replace(found, reading=replace(found.reading, gaps=(Gap("node \x1b[31m", "403\u202e", "ask"),)))
    for name, one in (("a", found), ("b", unread)):
        (tmp_path / name).write_bytes(snapshot.encode(one))
    assert run(["diff", str(tmp_path / "b"), str(tmp_path / "a")]) == 3
    assert capsys.readouterr().err == "incomplete before: node \\x1b[31m: 403\\u202e\n"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_act_in_no_format(name: str) -> None:
    machine = node(name)
    old = pod(name, container(name, "1"), namespace=name, on=name, owner=(name, name))
    lone = pod("gone", container(name, "1"), on=name, owner=("Deployment", f"other {name}"))
    found = diff(saved(cluster(machine, old, lone), V1), now_of(cluster(machine, old), V2_LINEAR))
    assert found.gone_workloads
    html = diff_html.render(found)
    tags = _Tags()
    tags.feed(html)
    assert not {"script", "img", "a"} & set(tags.seen)
    assert tags.seen.count("style") == 1
    markdown = diff_markdown.render(found)
    page = MarkdownIt("gfm-like").render(markdown)
    assert not [bad for bad in ("<script", "<img", "<a ", 'javascript:alert(1)"') if bad in page]
    table = diff_table.render(found)
    for text in (html, markdown, table):
        assert not {"\x1b", "\u202e"} & set(text)
    assert max(map(len, table.splitlines())) <= 80
    assert yaml.safe_load(as_yaml(found)) == json.loads(as_json(found))


def test_every_format_is_the_same_bytes_again_and_says_what_it_cuts() -> None:
    found = recorded_diff("v2+runtime", after_rules())
    for render in (diff_html.render, diff_markdown.render, diff_table.render, as_json):
        assert render(found) == render(recorded_diff("v2+runtime", after_rules()))
    many = [pod(f"p{n:04}", container("app", "1")) for n in range(3000)]
    large = diff(saved(cluster(N1, *many), V1), now_of(cluster(N1, *many), BOTH))
    markdown = diff_markdown.render(large)
    assert len(markdown) <= diff_markdown.MOST
    assert "more rows; all of it: `-o json=FILE`" in markdown
    assert "more rows" in diff_table.render(large)
    html = diff_html.render(large)
    assert len(html) <= diff_html.MOST
    assert "more rows" in html


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["-", "-"], "- can be given once: there is one standard input"),
        (["x.json", "x.json", "--to", "v2"], "x.json is an audit, which has its own states and target; leave --to out"),
        (
            ["x.json", "x.json", "--states-after", str(STATES)],
            "x.json is an audit, which has its own states and target; leave --states-after out",
        ),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text(rendered("json", saved(cluster(N1, A))))
    assert run(["diff", *arguments]) == 2
    assert capsys.readouterr().err == f"error: {error}\n"


def test_what_kubectl_printed_is_taken_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps({"kind": "List", "items": [N1, A]})
    (tmp_path / "b.json").write_text(text)
    (tmp_path / "s.yaml").write_text(V2_LINEAR)
    flags = ["--states", str(tmp_path / "s.yaml"), "--states-after", str(tmp_path / "s.yaml"), "--to", "v2"]
    assert run(["diff", str(tmp_path / "b.json"), str(tmp_path / "b.json"), *flags, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["workloads"]["unchanged"] == 1
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(["diff", "-", str(tmp_path / "b.json")]) == 1
    assert capsys.readouterr().err.startswith("error: standard input holds neither a snapshot nor an audit; save it to")


def test_states_of_before_alone_do_not_settle_what_runs_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said where it matters: all was unknown, and nothing said that the file is of one moment only."""
    (tmp_path / "b.json").write_text(json.dumps({"kind": "List", "items": [N1, A]}))
    (tmp_path / "s.yaml").write_text(V2_LINEAR)
    both, states_ = [str(tmp_path / "b.json")] * 2, str(tmp_path / "s.yaml")
    said = "--states is what BEFORE ran; what runs now is said with --states-after\n"
    assert run(["diff", *both, "--states", states_]) == 0
    assert capsys.readouterr().err == said
    assert run(["diff", *both]) == 0
    assert run(["diff", *both, "--states", states_, "--states-after", states_]) == 0
    assert capsys.readouterr().err == ""


def test_yaml_that_kubectl_printed_is_taken_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.yaml").write_text(yaml.safe_dump({"kind": "List", "items": [N1, A]}))
    (tmp_path / "s.yaml").write_text(V2_LINEAR)
    both, states_ = [str(tmp_path / "b.yaml")] * 2, str(tmp_path / "s.yaml")
    assert run(["diff", *both, "--states", states_, "--states-after", states_, "--to", "v2", "-o", "yaml"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert {outcome: amount for outcome, amount in found["summary"]["workloads"].items() if amount} == {"unchanged": 1}


def test_the_worked_example_of_the_docs_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (MOVED.parent.parent / "diff.md").read_text()
    example = page.partition("## Worked example")[2]
    script, quoted = (example.split(f"```{kind}\n")[1].partition("```")[0] for kind in ("sh", "text"))
    lines = script.splitlines()
    root = MOVED.parent.parent.parent
    for name in ("tests", "docs"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    assert lines[1].split() == ["cat", "tests/golden/states.yaml", "docs/examples/moved.yaml", ">", "after.yaml"]
    Path("after.yaml").write_text(Path("tests/golden/states.yaml").read_text() + MOVED.read_text())
    for line in (lines[0], lines[2]):
        assert line.startswith("kubectl cgaudit ")
        assert run(line.split()[2:]) == 0
    assert quoted in capsys.readouterr().out
