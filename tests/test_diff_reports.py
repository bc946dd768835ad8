"""What the reports of a comparison list, in which words, and where they cut."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.compare.diff.types import ContainerValues, Diff, LoneNode, LoneWorkload, Measure, NodeDiff, Outcome
from kubectl_cgaudit.plain import as_yaml
from kubectl_cgaudit.report import diff_content, diff_html, diff_markdown, diff_table
from kubectl_cgaudit.report.diff_content import Row
from tests.diff_support import N1, A, now_of
from tests.support import RECORDED_FLAGS, STATES, V1, V2_LINEAR, V2_QUADRATIC, cluster, container, node, pod, saved

PLAIN = diff(saved(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR))
# As of two inputs: of one state twice the table is one line.
PLAIN = replace(PLAIN, after=replace(PLAIN.after, input="another"))
MOVED = Measure("cgroup", "", "unpredicted", ("v1",), ("v1",), ("v2",))
MORE = "-o markdown and -o html show more, -o json all."


def machine(name: str, measure: Measure = MOVED, because: Sequence[str] = ()) -> NodeDiff:
    return NodeDiff(name, None, measure.outcome, "certain", tuple(because), (measure,))


def of_nodes(amount: int) -> Diff:
    return replace(PLAIN, nodes=tuple(machine(f"n{number:03}") for number in range(amount)))


@pytest.mark.parametrize(("amount", "rest"), [(59, ""), (60, ""), (61, "1 more row"), (62, "2 more rows")])
def test_the_table_shows_sixty_rows_and_counts_the_rest(amount: int, rest: str) -> None:
    part = diff_table.render(of_nodes(amount)).split("\n\n")[2].splitlines()
    assert part[0].split() == ["NODE", "OUTCOME", "WHAT", "BEFORE", "->", "NOW"]
    assert [line.split()[0] for line in part[1:61]] == [f"n{number:03}" for number in range(min(amount, 60))]
    assert part[61:] == ([f"{rest}: {MORE}"] if rest else [])


def test_the_table_says_that_a_cell_is_cut() -> None:
    long = replace(MOVED, what="runtime", of="h" * 80)
    part = diff_table.render(replace(PLAIN, nodes=(machine("n", long),))).split("\n\n")[2].splitlines()
    assert "…" in part[1]
    assert part[2:] == [f"cells cut at …: {MORE}"]
    many = tuple(machine(f"n{number}", long) for number in range(61))
    both = diff_table.render(replace(PLAIN, nodes=many)).split("\n\n")[2].splitlines()
    assert both[61:] == [f"1 more row, cells cut at …: {MORE}"]


@pytest.mark.parametrize(("amount", "rest"), [(20, []), (21, ["1 more: -o json shows all."])])
def test_the_table_lists_twenty_of_what_is_new_or_gone(amount: int, rest: list[str]) -> None:
    lone = tuple(LoneNode(f"n{number:02}", 1000, 1, True, ("v2",)) for number in range(amount))
    part = diff_table.render(replace(PLAIN, new_nodes=lone)).split("\n\n")[2].splitlines()
    assert [line.split()[2] for line in part[1:21]] == [f"n{number:02}" for number in range(20)]
    assert part[21:] == rest


@pytest.mark.parametrize(("amount", "rest"), [(20, []), (21, ["1 more note: -o json shows all."])])
def test_the_table_lists_twenty_notes(amount: int, rest: list[str]) -> None:
    notes = tuple(f"Note {number:02}." for number in range(amount))
    part = diff_table.render(replace(PLAIN, summary=replace(PLAIN.summary, notes=notes))).split("\n\n")[2].splitlines()
    assert part == [*notes[:20], *rest]


@pytest.mark.parametrize(("amount", "rest"), [(20, []), (21, ["1 more cause: -o json shows all."])])
def test_the_table_lists_twenty_other_causes_each_once(amount: int, rest: list[str]) -> None:
    other = replace(MOVED, outcome="other-cause")
    nodes = tuple(machine(f"n{number:02}", other, ["another size"]) for number in range(amount))
    twice = tuple(replace(each, measures=(other, replace(other, what="kubepods"))) for each in nodes)
    part = diff_table.render(replace(PLAIN, nodes=twice)).split("\n\n")[3].splitlines()
    assert part == [*(f"n{number:02}: another size." for number in range(20)), *rest]


def test_only_other_causes_are_listed_as_such() -> None:
    open_ = replace(MOVED, outcome="unknown", now=())
    nodes = (machine("n1", open_), machine("n2", replace(MOVED, outcome="other-cause"), ["another size"]))
    parts = diff_table.render(replace(PLAIN, nodes=nodes)).split("\n\n")
    assert parts[3] == "n2: another size."
    assert parts[4].splitlines()[0].startswith("unknown: cannot be said: ")


def lone(**fields: object) -> LoneWorkload:
    values = (ContainerValues("app", ("weight 100", "weight 39")), ContainerValues("side", ()))
    found = LoneWorkload("Deployment", "shop", "web", 2, True, values)
    return replace(found, **fields)


def test_what_was_said_to_stop_and_runs_has_a_row_with_its_cause() -> None:
    found = diff(saved(cluster(N1, A), V1, "kubelet=1.35"), now_of(cluster(N1, A), V1))
    found = replace(found, after=replace(found.after, input="another"))
    why = "it was said not to run after the move, and it runs; its kubelet is still v1.33.13"
    (machine,), (workload,) = diff_content.node_rows(found.nodes), diff_content.workload_rows(found.workloads)
    assert machine == Row("as-before", "n1", "after the move", "runs", "stops", "runs", 0, 0, (why,))
    assert workload == Row("as-before", "default/a pod", "pod after the move", "runs", "stops", "runs", 1, 1, (why,))
    parts = [" ".join(part.split()) for part in diff_table.render(found).split("\n\n")]
    assert parts[2:5] == [
        "NODE OUTCOME WHAT BEFORE -> NOW n1 as-before after the move runs, not stops",
        "WORKLOAD: OUTCOME WHAT BEFORE -> NOW default/a pod: as-before, 1/1 pods pod after the move runs, not stops",
        f"n1: {why}. default/a pod: {why}.",
    ]
    row = "**as-before** | 1/1 | pod after the move | runs | stops | runs |"
    assert f"| default/a pod | {row} {why} |" in diff_markdown.render(found)
    for text in (diff_markdown.render(found), diff_html.render(found)):
        assert "Nothing was to change" not in text


def test_a_cause_of_another_row_is_not_that_it_was_said_to_stop() -> None:
    """The same pod asks for more: its weight has that cause, and its kubelet has nothing to do with it."""
    more = pod("a", container("app", "2"), container("side", "100m"))
    found = diff(saved(cluster(N1, A), V1, "kubelet=1.35"), now_of(cluster(N1, more), V1))
    rows = {row.what: row for row in diff_content.workload_rows(found.workloads)}
    asked = "it asks for other CPU: app request 1000m limit none -> request 2000m limit none"
    assert (rows["pod weight"].outcome, rows["pod weight"].because) == ("other-cause", (asked,))


def test_what_is_new_or_gone_says_what_it_has_and_whether_it_is_sure() -> None:
    names = tuple(ContainerValues(name, ("weight 1",)) for name in "abcde")
    found = replace(
        PLAIN,
        new_workloads=(lone(), lone(sure=False, pod_count=1, containers=names)),
        gone_workloads=(lone(containers=()),),
        new_nodes=(LoneNode("n1", 4000, 1, True, ("v1", "v2")),),
        gone_nodes=(LoneNode("n2", 500, 0, False, ("v2",)),),
    )
    assert list(diff_content.lone(found)) == [
        ("new", "shop/web deploy", "2 pods: app weight 100 or weight 39, side ?"),
        ("new?", "shop/web deploy", "1 pod: a weight 1, b weight 1, c weight 1, d weight 1 and 1 more"),
        ("gone", "shop/web deploy", "not read"),
        ("new", "node n1", "cgroup v1 or v2, 4000m allocatable, 1 pod"),
        ("gone?", "node n2", "cgroup v2, 500m allocatable, 0 pods"),
    ]


@pytest.mark.parametrize(
    ("outcome", "before", "predicted", "now", "words"),
    [
        ("unpredicted", ("shares 2",), ("shares 2",), ("shares 4",), "shares 2 -> 4"),
        ("came-true", ("shares 2",), ("weight 1",), ("weight 1",), "shares 2 -> weight 1"),
        ("came-true", ("weight 9",), ("weight 1",), ("weight 2",), "weight 9 -> 2 (said 1)"),
        ("as-before", ("weight 9",), ("weight 1",), ("weight 9",), "weight 9, not 1"),
        ("otherwise", ("shares 2",), ("weight 1",), ("weight 3",), "shares 2 -> weight 3, not 1"),
        ("other-cause", ("no weight",), ("weight 1",), ("weight 3",), "no weight -> weight 3, not 1"),
        ("unknown", ("weight 1",), ("weight 3",), ("weight 3",), "now weight 3, in doubt"),
        ("unknown", ("weight 1",), ("weight 2", "weight 3"), ("weight 3",), "weight 1 -> 3, said 2 or 3"),
        ("unknown", (), ("weight 3",), ("weight 3",), "? -> weight 3"),
        ("unknown", ("weight 1",), ("weight 3",), (), "weight 1 -> ?"),
    ],
)
def test_a_change_in_as_few_words_as_its_outcome_allows(
    outcome: Outcome, before: tuple[str, ...], predicted: tuple[str, ...], now: tuple[str, ...], words: str
) -> None:
    measure = Measure("kubepods", "", outcome, before, predicted, now)
    (row,) = diff_content.node_rows([machine("n", measure)])
    assert diff_content.change(row) == words


@pytest.mark.parametrize(
    ("what", "values", "words"),
    [
        ("kubepods", (), "?"),
        ("kubepods", ("shares 1", "weight 2", "weight 3"), "shares 1 or weight 2 or 3"),
        ("kubepods", ("weight 1", "weight 2", "weight 3", "weight 4", "weight 5"), "weight 1 or 2 or 3 or 2 more"),
        ("pods-per-system", (1.449, 1.451, 3.7), "1.45 : 1 or 3.7 : 1"),
    ],
)
def test_the_values_of_a_side_are_said_once_each_and_three_at_most(
    what: str, values: tuple[str, ...], words: str
) -> None:
    measure = replace(MOVED, what=what, before=values)
    (row,) = diff_content.node_rows([machine("n", measure)])
    assert row.before == words


def test_yaml_keeps_the_order_of_the_schema_and_the_letters_of_every_language() -> None:
    text = as_yaml(replace(PLAIN, description="größer"))
    assert "\ndescription: größer\n" in text
    names = [line.partition(":")[0] for line in text.splitlines() if line[0] not in " -"]
    assert names[:3] == ["schemaVersion", "toolVersion", "to"]
    assert names[-3:] == ["workloads", "newWorkloads", "goneWorkloads"]


def test_a_row_names_the_node_that_it_replaces() -> None:
    (row,) = diff_content.node_rows([replace(machine("m1"), replaces="n1")])
    assert row.subject == "m1 (was n1)"


def test_only_outcomes_that_are_shown_are_explained() -> None:
    """In the order of what wants attention first."""
    outcomes: tuple[Outcome, ...] = ("came-true", "unpredicted", "otherwise")
    found = replace(PLAIN, nodes=tuple(machine(each, replace(MOVED, outcome=each)) for each in outcomes))
    words = [f"{each}: {diff_content.OUTCOME_WORDS[each]}." for each in ("unpredicted", "otherwise", "came-true")]
    assert diff_table.render(found).split("\n\n")[3].splitlines()[:3] == words
    listed = diff_markdown.render(found).partition("## What the words mean\n\n")[2].splitlines()
    assert [line for line in listed if line.startswith("- **")] == [
        f"- **{each.partition(':')[0]}**:{each.partition(':')[2]}" for each in words
    ]
    shown = diff_html.render(found).partition('<h2 id="words">')[2]
    places = [shown.index(each.partition(": ")[2]) for each in words]
    assert (places, shown.count("<li>")) == (sorted(places), 4)


@pytest.mark.parametrize(
    ("outcome", "now", "signs"),
    [
        ("as-before", "v1", ["X, not Y: it is X now, and Y was predicted."]),
        ("otherwise", "v3", ["X, not Y: it is X now, and Y was predicted."]),
        ("other-cause", "v3", ["X, not Y: it is X now, and Y was predicted."]),
        ("came-true", "v2", []),
        ("came-true", "v3", ["said Y: Y was predicted."]),
        ("unpredicted", "v3", []),
    ],
)
def test_signs_that_are_shown_are_explained(outcome: Outcome, now: str, signs: list[str]) -> None:
    row = machine("n", Measure("cgroup", "", outcome, ("v1",), ("v2",), (now,)))
    legend = diff_table.render(replace(PLAIN, nodes=(row,))).split("\n\n")[-1].splitlines()
    first = next(place for place, line in enumerate(legend) if line.startswith("Weights, quotas and versions"))
    assert [line for line in legend[:first] if line[:1] in "Xs"] == signs


IN_FULL = "all of it: `-o json=FILE` in the same run"


@pytest.mark.parametrize(("amount", "left_out"), [(60, []), (61, ["1 more row"]), (62, ["2 more rows"])])
def test_markdown_says_what_it_leaves_out_and_before_all_else_that_it_is_cut(amount: int, left_out: list[str]) -> None:
    parts = diff_markdown.render(of_nodes(amount)).split("\n\n")
    shortened = f"Shortened to fit a ticket, and … ends a text cut short; {IN_FULL}."
    assert [part for part in parts if part.startswith("**Left")] == [
        f"**Left out here:** {each}; {IN_FULL}." for each in left_out
    ]
    assert (parts[2] == shortened, parts.count(shortened)) == (bool(left_out), len(left_out))
    place = 3 if left_out else 2
    assert parts[place].startswith("- before: test: 1 node, 1 workload\n- after: test: 1 node, ")
    rows = parts[parts.index("## Nodes") + 1].splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == [f"| n{number:03}" for number in range(60)]
    assert parts[parts.index("## Workloads") + 1] == "Nothing was to change, and nothing did."


def test_markdown_lists_forty_notes_and_forty_of_what_is_new_or_gone() -> None:
    notes = tuple(f"Note {number:02}." for number in range(41))
    new = tuple(LoneNode(f"n{number:02}", 1000, 1, True, ("v2",)) for number in range(41))
    found = replace(PLAIN, summary=replace(PLAIN.summary, notes=notes), new_nodes=new)
    parts = diff_markdown.render(found).split("\n\n")
    assert parts[4].splitlines() == [
        *(f"- Note {number:02}." for number in range(40)),
        f"- **Left out here:** 1 more note; {IN_FULL}.",
    ]
    table = parts.index("## New and gone") + 1
    assert [row.split(" | ")[1] for row in parts[table].splitlines()[2:]] == [f"node n{n:02}" for n in range(40)]
    assert parts[table + 1] == f"**Left out here:** 1 more row; {IN_FULL}."


@pytest.mark.parametrize(("amount", "hidden"), [(600, ""), (601, "1 more row"), (602, "2 more rows")])
def test_the_page_counts_the_rows_that_it_leaves_out(amount: int, hidden: str) -> None:
    said = f'<p class="cut"><strong>{hidden}</strong> not shown here; '
    page = diff_html.render(of_nodes(amount))
    assert (page.count('<th scope="row">'), page.count('<p class="cut">')) == (600, 1 if hidden else 0)
    assert (said in page) == bool(hidden)


def test_on_a_phone_each_cell_says_what_column_it_is_of() -> None:
    new = LoneNode("n9", 4000, 3, True, ("v2",))
    found = replace(diff(saved(cluster(N1, A), V2_LINEAR), now_of(cluster(N1, A), V2_QUADRATIC)), new_nodes=(new,))
    parts = diff_html.render(found).split("<table")[1:]
    assert [part.startswith(' class="stack">') for part in parts] == [True] * 3
    for part in parts:
        _, *heads = re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', part)
        rows = re.findall(r'<th scope="row">.*?</tr>', part)
        assert {tuple(re.findall(r'<td[^>]* data-label="([^"]+)"', row)) for row in rows} == {tuple(heads)}


def test_rows_that_look_the_same_name_two_nodes_at_most() -> None:
    names = [f"n{number}" for number in range(1, 7)]
    nodes = [node(name) for name in names]
    pods = [pod(f"w-{name}", container("app", "1"), on=name, owner=("StatefulSet", "web")) for name in names]
    whole = cluster(*nodes, *pods)
    stay = "".join(
        f"\n- {{match: {{name: {name}}}, runtimes: {{default: runc 1.1.15}}}}" for name in ("n1", "n2", "n3")
    )
    found = diff(saved(whole, V2_LINEAR, "runtime"), now_of(whole, V2_QUADRATIC + stay))
    rows = [row for row in diff_content.workload_rows(found.workloads) if "weight" in row.what]
    assert [(row.outcome, row.what, diff_content.pods(row)) for row in rows] == [
        ("as-before", "app weight on n1, n2 and 1 more", "3/6"),
        ("came-true", "app weight on n4, n5 and 1 more", "3/6"),
    ]


def test_what_wants_attention_first_stands_first_whatever_workload_it_is_of() -> None:
    mixed = [
        pod(f"{name}-{on}", container("app", "1"), on=on, owner=("StatefulSet", name))
        for name in ("a", "b")
        for on in ("n1", "n2")
    ]
    whole = cluster(node("n1"), node("n2"), *mixed)
    stay = "\n- {match: {name: n2}, runtimes: {default: runc 1.1.15}}"
    found = diff(saved(whole, V2_LINEAR, "runtime"), now_of(whole, V2_QUADRATIC + stay))
    rows = diff_content.workload_rows(found.workloads)
    assert [(row.outcome, row.subject) for row in rows] == [
        ("as-before", "default/a sts"),
        ("as-before", "default/b sts"),
        ("came-true", "default/a sts"),
        ("came-true", "default/b sts"),
    ]


def test_two_audits_of_one_state_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "now.json.gz")
    flags = RECORDED_FLAGS[: RECORDED_FLAGS.index("--states")]
    assert run(["snapshot", *flags, "-o", path]) == 0
    capsys.readouterr()
    assert run(["diff", path, path]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"Nothing changed: both have the same 3 nodes and 15 workloads \(input sha256:[0-9a-f]{12}\)\. "
        r"The predicted changes are still to come\.",
        line,
    )
    # What is said of it may differ all the same: then it is told.
    assert run(["diff", path, path, "--states", str(STATES), "--states-after", str(STATES)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    moved = tmp_path / "moved.yaml"
    moved.write_text(STATES.read_text() + "\n- {match: {name: worker-c}, cgroup: v2}\n")
    assert run(["diff", path, path, "--states", str(STATES), "--states-after", str(moved)]) in (0, 3)
    assert "Nothing changed" not in capsys.readouterr().out
