import re

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import (
    Audit,
    CaseChange,
    Change,
    ContainerAudit,
    Coverage,
    Finding,
    GapRecord,
    Known,
    Moment,
    NodeAudit,
    NodeCase,
    NodeMoment,
    NominalChange,
    PodAudit,
    ScenarioRecord,
    Span,
    Subject,
    Verdict,
    WorkloadAudit,
)
from kubectl_cgaudit.report.content import (
    coverage_facts,
    effect_words,
    inside,
    node_cases,
    nominals,
    rules,
    share,
    sureness,
)
from kubectl_cgaudit.report.markdown import render
from tests.support import audited, recorded_audit, recorded_blind

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=http://evil.example/x onerror=alert(1)>",
    "</summary></details></table></style>",
    "a|b||c",
    "line\nbreak\r\n\n# heading",
    "back`tick ``two``",
    "\x1b[31mred\x1b[0m\x07",
    "\u202eright to left\u2066",
    "[x](javascript:alert(1)) ![y](http://evil.example/y)",
    "{{ 7*7 }} {% raw %} {# c #}",
    "@admins #1 www.evil.example https://evil.example",
    '" onmouseover=\'alert(1)\' style="background:url(http://evil.example)"',
    "trailing backslash \\",
    "x" * 10_000,
)
ROW = re.compile(r"(?<!\\)(?:\\\\)*\|")
_VERDICT = "1 of 2 workloads loses."


def moment(version: str, value: int, share_: float, system: float, in_pod: float | None = None) -> Moment:
    default = 1024 if version == "v1" else 100
    return Moment(version, value, value / default, share_, system, in_pod, None)  # type: ignore[arg-type]


def hand_made(name: str = "web", *, complete: bool = True, when: tuple[str, ...] = ("",)) -> Audit:
    """An audit of one node and two workloads in which every cluster string is `name`."""
    before = NodeMoment("v1", 4096, 1024, 4.0, 0.8, 0.2, "1.33.1 (linear)", {name: "runc 1.1.5 (linear)"})
    after = NodeMoment("v2", 157, 100, 1.57, 0.61, 0.39, "1.33.1 (linear)", {name: "runc 1.3.2 (quadratic)"})
    cases = tuple(NodeCase(w, after if "v2" in w else before, after) for w in when)
    known = {
        "cgroup": Known(None if len(when) > 1 else "v1", "unknown" if len(when) > 1 else "likely", name),
        f"runtime:{name}": Known("runc 1.1.5 (linear)", "assumed", name),
    }
    node = NodeAudit(name, name, name, name, name, 4000, 2, "assumed", known, (name,), (), (), (), cases)
    losing, same = _workload(name, "Deployment", when), _unchanged(name)
    finding = Finding(
        "CGA201",
        "high",
        "loses priority",
        Subject("workload", name, name, name),
        "",
        f"Pod {name}: less.",
        "Because.",
        f"Do {name}.",
    )
    gaps = () if complete else (GapRecord(name, name, name),)
    coverage = Coverage(
        complete=complete,
        source=name,
        filter=name,
        gaps=gaps,
        notes=(name,),
        unmatched=(),
        nodes_read=1,
        nodes_audited=1,
        pods_read=3,
        pods_audited=2,
        pods_finished=0,
        pods_without_node=(name,),
        windows_nodes=(name,),
        virtual_nodes=(name,),
        pods_on_windows_nodes=1,
        pods_on_virtual_nodes=2,
        workload_names={"Deployment": "derived from the pod-template-hash"},
        ignored_kinds={name: 2},
        duplicates=1,
    )
    effects = {"loses": int(len(when) == 1), "unknown": int(len(when) > 1), "none": 1}
    verdict = Verdict(f"{_VERDICT} {name}", effects, {"high": 1}, (f"CGA201: Do `this` to {name}.",))
    scenario = ScenarioRecord(name, name, {"system-loss": 0.1, "outweighed": 10.0}, (f"Assumed {name}.",))
    return Audit(
        schema_version="1.0",
        tool_version="0.1.0",
        generated_at=None,
        scenario=scenario,
        verdict=verdict,
        coverage=coverage,
        nodes=(node,),
        workloads=(losing, same),
        findings=(finding,),
    )


def _workload(name: str, kind: str, when: tuple[str, ...]) -> WorkloadAudit:
    def changes(in_pod: tuple[float, float] | None) -> tuple[CaseChange, ...]:
        was, will = in_pod or (None, None)
        new = moment("v2", 39, 0.2, 0.5, will)
        return tuple(CaseChange(w, new if "v2" in w else moment("v1", 1024, 0.3, 1.25, was), new) for w in when)

    container = ContainerAudit(name, name, 1000, None, changes((0.9, 0.81)))
    pod = PodAudit(name, name, name, name, "assumed", ("loses",), changes(None), (container,))
    open_ = len(when) > 1
    worst = Change(name, None, name, when[0], 1.25, 0.5, -0.6)
    best = Change(name, None, name, when[-1], 0.5, 0.5, 0.0) if open_ else worst
    return WorkloadAudit(
        kind=kind,
        namespace=name,
        name="one",
        effects=("unknown", "nominal") if open_ else ("loses", "moves", "nominal"),
        confidence="assumed",
        pod_count=1,
        unpredicted_pods=0,
        share=Change("web-1", None, "n1", "", 0.3, 0.2, -1 / 3),
        against_system=worst,
        against_system_best=best,
        inside_pod=Change(name, name, name, when[0], 0.9, 0.81, -0.1),
        nominal=(
            NominalChange(name, Span(1024, 1024), Span(39, 39), Span(0.39, 1), Span(0.39, 0.39), "shares", "weight"),
        ),
        pods=(pod,),
    )


def _unchanged(name: str) -> WorkloadAudit:
    still = moment("v2", 39, 0.2, 0.5)
    pod = PodAudit(name, name, "Burstable", name, "assumed", (), (CaseChange("", still, still),), ())
    change = Change(name, None, name, "", 0.5, 0.5, 0.0)
    return WorkloadAudit("Deployment", name, "two", (), "assumed", 1, 0, change, change, change, None, (), (pod,))


def tables(text: str) -> list[list[str]]:
    """Each table's lines."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [lines for lines in found if lines]


def section(text: str, title: str) -> str:
    """What stands under a heading."""
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_recorded_cluster() -> None:
    audit = recorded_audit()
    text = render(audit)
    lines = text.splitlines()
    assert lines[:3] == [
        "# CPU priority audit: now → v2+runtime",
        "",
        f"**{audit.verdict.sentence}**",
    ]
    assert [line for line in lines if line.startswith("## ")] == [
        "## Next steps",
        "## Key facts",
        "## How sure",
        "## Nodes",
        "## Workloads",
        "## Findings",
        "## Method",
        "## Assumptions and thresholds",
        "## Coverage",
        "## Every container",
    ]
    assert "| **Coverage** | complete |" in lines
    assert "| **Pods audited** | 27 of 29 read (1 finished, 1 without a node) |" in lines
    assert "- Pods without a node, not predicted: platform/waiting-for-gpu" in lines
    assert "| worker-c | v1 → v2 | 3788 : 1024 → 145 : 100 | 3.7 : 1 → 1.45 : 1 | 79% → 59% | 21% → 41% |" in lines
    assert "`systemctl set-property system.slice CPUWeight=39`" in text
    assert "INCOMPLETE" not in text


def test_recorded_workloads_once_each_in_the_audits_order() -> None:
    audit = recorded_audit()
    (table,) = tables(section(render(audit), "Workloads"))
    titles = [line.split(" | ")[0].removeprefix("| ") for line in table[2:]]
    assert titles == [workload.title for workload in audit.workloads]
    assert len(titles) == 15
    checkout = next(line for line in table if "shop/checkout" in line)
    assert checkout == (
        "| shop/checkout | Deployment | 3 | **loses against system processes; also: CPU moves inside its pod, the number in "
        "cpu.weight changes** | assumed | -62%..0% | 27% → 20% | app -6.0% | "
        "app: weight 39..100 → weight 100 (0.39..1 → 1 x default)<br>"
        "istio-proxy: weight 4..17 → weight 17 (0.04..0.17 → 0.17 x default)<br>"
        "app: shares 1024 → weight 100 (1 x default)<br>istio-proxy: shares 102 → weight 17 (0.0996 → 0.17 x default) |"
    )


def test_recorded_containers() -> None:
    (table,) = tables(section(render(recorded_audit()), "Every container"))
    assert (
        "| shop/checkout-d5491e7e7-22276 | app (app) | worker-c | shares 1024 (1 x) → weight 100 (1 x) "
        "| 25% → 17% | 1.17 → 0.421 | 91% → 85% | no limit |"
    ) in table
    assert sum("ext-authz (app) | worker-a" in line and "77m → 80m" in line for line in table) == 1


def test_findings_say_why_once_and_a_common_remedy_once() -> None:
    audit = recorded_audit()
    text = section(render(audit), "Findings")
    assert text.count("### CGA201") == 1
    assert text.count("kubepods competes with system.slice") == 1
    assert text.count("give system.slice weight 39") == 1
    for finding in audit.findings:
        assert finding.subject.title in text
    assert sum(len(remedied.findings) for group in rules(audit.findings) for remedied in group.groups) == len(
        audit.findings
    )


def test_unknown_nodes_show_each_case_and_are_no_pass() -> None:
    audit = audited(recorded_blind())
    text = render(audit)
    assert audit.verdict.sentence in text
    assert "**For 15 workloads the effect cannot be said.** That is not a pass" in text
    nodes = section(text, "Nodes")
    assert (
        "| worker-a | if cgroup v1 | v1 → v2 | 3788 : 1024 → 145 : 100 | 3.7 : 1 → 1.45 : 1 | 79% → 59% | 21% → 41% |"
        in nodes
    )
    assert "| worker-a | if cgroup v2 | v2 | 145 : 100 | 1.45 : 1 | 59% | 41% |" in nodes
    assert "| worker-a | cgroup version | **not known** | v2 | **unknown** | nothing says it |" in nodes
    (table,) = tables(section(text, "Workloads"))
    for line in table[2:]:
        assert "**cannot be said" in line
        assert "nothing changes" not in line
        assert "only the number" not in line


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("complete", [True, False])
def test_hostile_names_stay_text(name: str, complete: bool) -> None:
    text = render(hand_made(name, complete=complete, when=("cgroup v1, x", "cgroup v2, x")))
    plain = render(hand_made(complete=complete, when=("cgroup v1, x", "cgroup v2, x")))
    assert [len(table) for table in tables(text)] == [len(table) for table in tables(plain)]
    assert len(text.splitlines()) == len(plain.splitlines())
    for table in tables(text):
        assert len({len(ROW.findall(line)) for line in table}) == 1
    outside_code = re.sub(r"(?<!\\)`[^`\n]*`", "", text)
    assert set(re.findall(r"<[^>]*>", outside_code)) == {"<details>", "</details>", "<summary>", "</summary>"}
    assert not re.search(r"(?<!\\)\]\(", outside_code)
    assert not re.search(r"(?<!&)[@#](?=\w)|https?://|\bwww\.", outside_code)
    assert not re.search(r"[^\n -\ud7ff]|[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]", text)
    assert max(map(len, text.splitlines())) < 9_500


def test_one_backtick_in_a_name_does_not_turn_the_text_around() -> None:
    text = render(hand_made("back`tick <b>"))
    assert "Do \\`this\\` to back\\`tick &lt;b&gt;." in text


def test_incomplete_audit_says_so_at_the_top_and_under_coverage() -> None:
    text = render(hand_made("lost", complete=False))
    assert text.index("**INCOMPLETE: this could not be read") < text.index("## Next steps")
    assert "- lost: lost. lost." in text
    assert "| **Coverage** | INCOMPLETE: 1 gap |" in text
    assert section(text, "Coverage").strip().startswith("**INCOMPLETE**\n\n| Not read | Why | What to do |")
    assert "Complete: everything" not in text
    assert "INCOMPLETE" not in render(hand_made("lost"))


def test_names_set_apart_are_all_there() -> None:
    audit = hand_made()
    names = tuple(f"shop/pending-{index}" for index in range(2000))
    text = render(replace(audit, coverage=replace(audit.coverage, pods_without_node=names)))
    assert f"- Pods without a node, not predicted: {', '.join(names)}\n" in text


def test_hand_made_rows() -> None:
    known, open_ = hand_made().workloads[0], hand_made(when=("cgroup v1, a", "cgroup v2, a")).workloads[0]
    assert effect_words(known) == (
        "loses against system processes; also: CPU moves inside its pod, the number in cpu.weight changes"
    )
    assert effect_words(open_) == "cannot be said; also: the number in cpu.weight changes"
    assert (share(known), share(open_)) == ("30% -> 20%", "30% -> 20% at most")
    assert (inside(known), inside(open_)) == ("web -10%", "web -10%..0%")
    assert nominals(known) == ["web: shares 1024 -> weight 39 (0.39..1 -> 0.39 x default)"]
    assert nominals(open_) == ["web: shares 1024 -> weight 39 (0.39..1 -> 0.39 x default)"]


def test_an_effect_under_the_thresholds_is_not_called_nothing() -> None:
    workload = hand_made().workloads[1]
    assert effect_words(workload) == "nothing changes"
    change = Change("web", None, "web", "", 0.5, 0.47, -0.06)
    assert effect_words(replace(workload, against_system=change)) == ("nothing changes beyond the thresholds")


def test_a_move_that_cannot_be_said_is_not_called_none() -> None:
    workload = hand_made().workloads[0]
    assert inside(replace(workload, inside_pod=None)) == "?"
    unpredicted = replace(workload, pod_count=0, unpredicted_pods=2, pods=(), nominal=(), effects=("unknown",))
    blank = replace(unpredicted, against_system=None, against_system_best=None, inside_pod=None, share=None)
    text = render(replace(hand_made(), workloads=(blank,)))
    assert "| web/one | Deployment | 0 + 2 not predicted | **cannot be said** | assumed | ? | ? | ? | ? |" in text


@pytest.mark.parametrize(
    ("when", "labels"),
    [
        (("",), [""]),
        (("cgroup v1", "cgroup v2"), ["if cgroup v1", "if cgroup v2"]),
        (
            ("cgroup v1, linear runtime", "cgroup v1, quadratic runtime", "cgroup v2, linear runtime"),
            ["if cgroup v1", "if cgroup v2, linear runtime"],
        ),
        (("linear runtime", "quadratic runtime"), ["the same in every case"]),
    ],
)
def test_cases_that_show_the_same_are_one(when: tuple[str, ...], labels: list[str]) -> None:
    assert [label for label, _ in node_cases(hand_made(when=when).nodes[0])] == labels


def test_sureness_takes_the_least_sure_runtime() -> None:
    node = hand_made().nodes[0]
    known = {
        "cgroup": Known("v2", "certain", ""),
        "runtime:a": Known("x", "certain", ""),
        "runtime:b": Known(None, "unknown", ""),
    }
    rows = dict(sureness([replace(node, known=known), node]))
    assert rows["cgroup version"] == (1, 0, 1, 0, 0)
    assert rows["formula of the runtimes"] == (0, 1, 0, 0, 1)
    assert rows["kubelet's formula"] == (0, 0, 0, 0, 0)


def test_coverage_names_what_was_set_apart() -> None:
    assert dict(coverage_facts(hand_made().coverage)) == {
        "Filter": "only web is reported; the other pods are read as siblings",
        "Finished pods, which want no CPU": "0",
        "Pods without a node, not predicted": "web",
        "Windows nodes, which have no cgroups": "web (1 pod, not predicted)",
        "Virtual nodes, which have no kubelet": "web (2 pods, not predicted)",
        "Deployment names": "derived from the pod-template-hash",
        "Objects of no use to the audit": "2 web",
        "Objects read more than once": "1",
    }


def test_the_same_audit_gives_the_same_text_and_its_time_only_if_it_has_one() -> None:
    audit = hand_made()
    assert render(audit) == render(hand_made())
    assert render(audit).endswith("---\n\nkubectl-cgaudit 0.1.0\n")
    dated = replace(audit, generated_at="2026-01-30T12:00:00Z")
    assert render(dated).endswith("---\n\nkubectl-cgaudit 0.1.0, 2026-01-30T12:00:00Z\n")


def test_an_audit_of_nothing() -> None:
    text = render(replace(hand_made(), nodes=(), workloads=(), findings=()))
    assert "No Linux node was audited." in text
    assert "No workload was audited: nothing can be said about workloads." in text
