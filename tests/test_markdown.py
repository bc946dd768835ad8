"""The Markdown report: what it says of the recorded cluster and of large ones, and what it cuts."""

import re
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import (
    Audit,
    Change,
    GapRecord,
    Subject,
)
from kubectl_cgaudit.report import markdown_tables
from kubectl_cgaudit.report.by_rule import rules
from kubectl_cgaudit.report.content import inside
from kubectl_cgaudit.report.cuts import IN_FULL, Limits
from kubectl_cgaudit.report.groups import grouped
from kubectl_cgaudit.report.links import HOMEPAGE, finding_page
from kubectl_cgaudit.report.markdown import MOST, START, render
from kubectl_cgaudit.report.markdown_text import CUT, Page
from tests.hostile import hand_made
from tests.markdown_support import section, tables
from tests.support import V1, V2_LINEAR, audited, cluster, node, recorded_audit, recorded_blind

ROOT = Path(__file__).parent.parent


@cache
def large() -> Audit:
    """5,000 nodes, and 30,000 workloads with 150,000 pods, each unlike the others in some way."""
    small = hand_made()
    (node,), (losing, same) = small.nodes, small.workloads
    nodes = tuple(
        replace(node, name=f"node-{i:04}", kernel=f"6.1.{i % 7}", allocatable_milli=1000 * (1 + i % 16))
        for i in range(5000)
    )
    kinds = [
        losing,
        replace(losing, effects=("moves", "nominal")),
        replace(losing, effects=("nominal",)),
        same,
        replace(losing, effects=("unknown",)),
    ]
    workloads = []
    for i in range(30_000):
        kind = kinds[i * len(kinds) // 30_000]
        name = f"service-{i:05}"
        change = Change(f"{name}-0", None, "node-0000", "", 1.25, 0.5, -0.6)
        inside_ = replace(change, container="web", before=0.9, after=0.81, change=-0.1)
        pods = tuple(replace(kind.pods[0], name=f"{name}-{n}", node=f"node-{(i + n) % 5000:04}") for n in range(5))
        workloads.append(
            replace(kind, namespace=f"team-{i % 40}", name=name, pods=pods, pod_count=5, inside_pod=inside_)
        )
    finding = small.findings[0]
    findings = [
        replace(
            finding,
            rule=f"CGA20{1 + i % 7}",
            subject=Subject("workload", each.name, each.namespace, "Deployment"),
            seen=f"Pod {each.title}-0 on node-0000: 1.29 times the CPU of system.slice now, 0.492 times after (-62%).",
            remedy=f"To keep the ratio of now on node-{i:04} give system.slice weight 39.",
        )
        for i, each in enumerate(workloads[:15_000])
    ]
    return replace(small, nodes=nodes, workloads=tuple(workloads), findings=tuple(findings))


def test_recorded_cluster() -> None:
    audit = recorded_audit()
    text = render(audit)
    lines = text.splitlines()
    assert lines[:5] == [
        "# CPU priority audit: now → v2+runtime",
        "",
        f"**{audit.verdict.sentence.replace('->', '→')}**",
        "",
        "## Key facts",
    ]
    assert [line for line in lines if line.startswith("## ")] == [
        "## Key facts",
        "## Next steps",
        "## How sure",
        "## Nodes",
        "## Workloads that change",
        "## CPU that moves inside pods",
        "## Findings",
        "## Method",
        "## Assumptions and thresholds",
        "## Coverage",
        "## Every container",
    ]
    assert "| **Coverage** | complete |" in lines
    assert "| **Pods audited** | 27 of 29 read (1 finished, 1 without a node) |" in lines
    assert "- Pods without a node, not predicted: platform/waiting-for-gpu" in lines
    worst, *_ = tables(section(text, "Nodes"))[0][2:]
    assert worst == (
        "| worker-c | stated | v1 → v2 | 3788 : 1024 → 145 : 100 | 3.7 : 1 → 1.45 : 1 | 79% → 59% | 21% → 41% |"
    )
    assert "`systemctl set-property system.slice CPUWeight=39`" in text
    assert "- CPU limits do not cap the shares: a container may be held below its share by its own limit." in lines
    assert not re.search("INCOMPLETE|Shortened|Left out|…", text)
    assert len(text) < MOST


def test_recorded_how_sure_says_what_its_words_mean() -> None:
    found = section(render(recorded_audit()), "How sure")
    (table,) = tables(found)
    assert table[2:] == [
        "| cgroup version | 1 | 2 | 0 | 0 | 0 |",
        "| formula of the runtimes | 0 | 3 | 0 | 0 | 0 |",
        "| kubelet's formula | 1 | 2 | 0 | 0 | 0 |",
        "| weight of system.slice | 0 | 1 | 0 | 2 | 0 |",
    ]
    assert found.strip().splitlines()[-1] == (
        "certain: measured on the node. stated: the states file says so. likely: a verified rule about this platform and "
        "release. probable: the platform's default, which may have been overridden; that case is predicted too, and shown "
        "behind. unknown: nobody says; every possibility was predicted and the range is shown."
    )


def test_recorded_workloads_that_change_in_the_audits_order() -> None:
    audit = recorded_audit()
    found = section(render(audit), "Workloads that change")
    (table,) = tables(found)
    titles = [line.split(" | ")[0].removeprefix("| ") for line in table[2:]]
    assert titles == [workload.title for workload in audit.workloads[:12]]
    assert table[2] == (
        "| shop/checkout | Deployment | 3 | **loses against system processes**; also: CPU moves inside its pod, the number in "
        "cpu.weight changes | stated | -62%..0% | 27% → 20% |"
    )
    assert "\nNot listed: 3 of 15 workloads in which nothing changes beyond the thresholds.\n" in found


def test_recorded_pods_in_which_cpu_moves() -> None:
    (table,) = tables(section(render(recorded_audit()), "CPU that moves inside pods"))
    assert [line.split(" | ")[0].removeprefix("| ") for line in table[2:]] == [
        "shop/payments",
        "platform/node-exporter",
        "edge/canary-gateway",
        "edge/legacy-gateway",
        "shop/checkout",
    ]
    assert table[-1] == (
        "| shop/checkout | Deployment | checkout-d5491e7e7-22276 on worker-c | app 91% → 85% (-6.0%); "
        "istio-proxy 9.1% → 15% (+60%) | app shares 1024 → weight 100; istio-proxy shares 102 → weight 17 |"
    )


def test_recorded_containers() -> None:
    (table,) = tables(section(render(recorded_audit()), "Every container"))
    assert (
        "| shop/checkout | checkout-d5491e7e7-22276 on worker-c | app (app) | shares 1024 (1 x) → weight 100 (1 x) "
        "| 25% → 17% | 1.17 → 0.421 | 91% → 85% | no limit |"
    ) in table
    assert sum("ext-authz (app)" in line and "77m → 80m" in line for line in table) == 1


def test_equal_replicas_are_one_row() -> None:
    small = hand_made()
    losing = small.workloads[0]
    pods = tuple(replace(losing.pods[0], name=f"web-{i:03}", node=f"n{i % 7}") for i in range(500))
    inside_ = replace(losing.inside_pod or Change("", None, "", "", 0, 0, 0), pod="web-000")
    text = render(replace(small, workloads=(replace(losing, pods=pods, pod_count=500, inside_pod=inside_),)))
    (table,) = tables(section(text, "Every container"))
    assert table[2:] == [
        "| web/one | 500 pods, such as web-000, on 7 nodes | the pod | shares 1024 (1 x) → weight 39 (0.39 x) "
        "| 30% → 20% | 1.25 → 0.5 |  | no limit |",
        "| web/one | 500 pods, such as web-000, on 7 nodes | web (web) | shares 1024 (1 x) → weight 39 (0.39 x) "
        "| 30% → 20% | 1.25 → 0.5 | 90% → 81% | no limit |",
    ]


def test_equal_nodes_are_one_row() -> None:
    small = hand_made()
    nodes = tuple(replace(small.nodes[0], name=f"n{i:02}") for i in range(12))
    table, known, described = tables(section(render(replace(small, nodes=nodes)), "Nodes"))
    assert table[2:] == [
        "| 12 nodes: n00, n01, n02 and 9 more | stated | v1 → v2 | 4096 : 1024 → 157 : 100 | 4 : 1 → 1.57 : 1 "
        "| 80% → 61% | 20% → 39% |"
    ]
    assert known[2] == "| 12 nodes: n00 and 11 more | cgroup version | v1 | v2 | likely | web |"
    assert (
        described[2] == f"| 12 nodes: {', '.join(n.name for n in nodes)} | web | web | web | web | 4000m | 24 | web |"
    )


def test_findings_say_why_once_and_a_common_remedy_once() -> None:
    audit = recorded_audit()
    text = section(render(audit), "Findings")
    page = "https://github.com/kubectl-cgaudit/kubectl-cgaudit/blob/main/docs/findings/CGA201.md"
    assert text.count(f"\n### [CGA201]({page}) loses priority against system processes: 5 high\n") == 1
    assert text.count("<summary>5 findings, and what to do</summary>") == 2
    assert text.count("kubepods competes with system.slice") == 1
    # Of what is the same for all of a node the reserve leaves one workload a loss.
    assert text.count("give system.slice weight 39") == 2
    assert text.count("With the reserve the pod still loses up to 10%.") == 1
    for finding in audit.findings:
        assert finding.subject.title in text
    every = len(audit.findings)
    assert sum(group.amount for group in rules(audit.findings, 1)) == every
    assert sum(len(remedied.findings) for group in rules(audit.findings, every) for remedied in group.groups) == every
    assert all(len(group.groups) == len(group.groups[0].findings) == 1 for group in rules(audit.findings, 1))


def test_every_rule_links_to_its_page_under_the_homepage_of_the_plugin() -> None:
    homepage = re.search(r"homepage: (\S+)", (ROOT / "plugin.yaml").read_text())
    assert homepage
    assert homepage[1] == HOMEPAGE
    assert finding_page("CGA401") == f"{HOMEPAGE}/blob/main/docs/findings/CGA401.md"
    assert [finding_page(rule) for rule in ("", "CGA1", "CGA2011", "CGA201\n", "../CGA201", "CGA٢٠١")] == [None] * 6


def test_what_is_no_rule_of_ours_is_no_link() -> None:
    small = hand_made()
    text = render(replace(small, findings=(replace(small.findings[0], rule="CGA201](http://evil.example)"),)))
    assert "\n### CGA201\\](http:&#8203;//evil.example) loses priority: 1 high\n" in text


def test_unknown_nodes_show_each_case_and_are_no_pass() -> None:
    audit = audited(recorded_blind())
    text = render(audit)
    assert audit.verdict.sentence in text
    assert "**For 15 workloads it cannot be said what they gain or lose.** That is not a pass" in text
    nodes = section(text, "Nodes")
    assert (
        "| worker-c | **unknown** | if cgroup v1 | v1 → v2 | 3788 : 1024 → 145 : 100 | 3.7 : 1 → 1.45 : 1 | 79% → 59% "
        "| 21% → 41% |" in nodes
    )
    assert "| worker-c | **unknown** | if cgroup v2 | v2 | 145 : 100 | 1.45 : 1 | 59% | 41% |" in nodes
    assert "| worker-c | cgroup version | **not known** | v2 | **unknown** | nothing says it |" in nodes
    (table,) = tables(section(text, "Workloads that change"))
    assert len(table) == 2 + 15
    for line in table[2:]:
        assert "**cannot be said" in line
        assert "nothing changes" not in line
        assert "only the number" not in line


def test_a_large_cluster_fits_a_ticket_and_says_what_is_cut() -> None:
    text = render(large())
    assert 30_000 < len(text) < MOST
    assert text.splitlines()[4] == (
        "Shortened to fit a ticket: each place says how many it leaves out, and … ends a text cut short; all of it: "
        "`-o json=FILE`, of containers also `-o csv=FILE`, in the same run or with `kubectl cgaudit report`."
    )
    (table,) = tables(section(text, "Workloads that change"))
    shown = len(table) - 2
    assert shown >= 30
    assert (
        f"**Left out here:** {24_000 - shown} more workloads (loses against system processes: {6000 - shown}; cannot be said: "
        f"6000; CPU moves inside its pod: 6000; another number in cpu.weight, no CPU beyond the thresholds: 6000); {IN_FULL}."
    ) in text
    assert "Not listed: 6000 of 30000 workloads in which nothing changes beyond the thresholds." in text
    (inside_,) = tables(section(text, "CPU that moves inside pods"))
    assert f"**Left out here:** {18_000 - (len(inside_) - 2)} more workloads; {IN_FULL}." in text
    findings = section(text, "Findings").split("\n</details>")[0]
    listed = findings.count("\n- **high, ")
    assert listed >= 3
    assert f"**Left out here:** {2143 - listed} more findings; {IN_FULL}." in findings
    assert [line.split(":")[0] for line in tables(section(text, "Nodes"))[0][2:]] == ["| 313 nodes"] * 8 + [
        "| 312 nodes"
    ] * 8
    (rows,) = tables(section(text, "Every container"))
    reached = -(-(len(rows) - 2) // 2)
    assert f" {30_000 - reached} more workloads with {5 * (30_000 - reached)} pods; {IN_FULL}." in text
    assert "| team-0/service-00000 | 5 pods, such as service-00000-0, on 5 nodes | the pod |" in rows[2]


def test_rows_that_are_left_out_of_the_last_workload_are_counted() -> None:
    small = hand_made()
    losing = small.workloads[0]
    container = losing.pods[0].containers[0]
    many = tuple(replace(container, name=f"c{i:04}") for i in range(3000))
    crowded = replace(losing, pods=(replace(losing.pods[0], containers=many),))
    text = render(replace(small, workloads=(crowded, small.workloads[1])))
    (rows,) = tables(section(text, "Every container"))
    more = 3001 - (len(rows) - 2)
    assert more > 2500
    assert f"**Left out here:** {more} more rows of web/one; 1 more workload with 1 pod; {IN_FULL}." in text
    assert f"c0005 90% → 81% (-10%) and {3000 - 6} more |" in text
    assert len(text) < MOST


def test_incomplete_audit_says_so_at_the_top_and_under_coverage() -> None:
    text = render(hand_made("lost", complete=False))
    assert text.index("**INCOMPLETE: this could not be read") < text.index("## Key facts")
    assert "- lost: lost. lost." in text
    assert "| **Coverage** | INCOMPLETE: 1 gap |" in text
    assert (
        section(text, "Coverage")
        .strip()
        .startswith(
            "**INCOMPLETE**\n\n<details>\n<summary>What was read, what was not, and what was set apart</summary>\n\n"
            "| Not read | Why | What to do |"
        )
    )
    assert "Complete: everything" not in text
    assert "INCOMPLETE" not in render(hand_made("lost"))


def test_long_lists_are_cut_and_counted() -> None:
    audit = hand_made(complete=False)
    names = tuple(f"shop/pending-{index}" for index in range(2000))
    gaps = tuple(GapRecord(f"pods {index}", "forbidden", "Ask") for index in range(45))
    coverage = replace(audit.coverage, pods_without_node=names, gaps=gaps, notes=("a", "b") * 20)
    text = render(replace(audit, coverage=coverage))
    listed = START.listed
    assert f"- Pods without a node, not predicted: {', '.join(names[:listed])}, and {2000 - listed} more\n" in text
    assert (
        f"**Left out here:** things not read: {45 - listed} more; notes: {40 - listed} more; pods without a node: "
        in text
    )
    top = text.split("## Key facts")[0].splitlines()
    assert top[4] == "**INCOMPLETE: this could not be read, and is not in the numbers.**"
    assert top[6:12] == [*(f"- pods {i}: forbidden. Ask." for i in range(5)), "- and 40 more, under Coverage"]


def test_a_move_that_cannot_be_said_is_not_called_none() -> None:
    workload = hand_made().workloads[0]
    assert inside(replace(workload, inside_pod=None)) == "?"
    unpredicted = replace(workload, pod_count=0, unpredicted_pods=2, pods=(), nominal=(), effects=("unknown",))
    blank = replace(unpredicted, against_system=None, against_system_best=None, inside_pod=None, share=None)
    text = render(replace(hand_made(), workloads=(blank,)))
    assert "| web/one | Deployment | 0 + 2 not predicted | **cannot be said** | stated | ? | ? |" in text
    assert "No container is known to lose CPU to another one of its pod beyond the threshold." in text
    assert "No pod was predicted." in text


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


def test_what_is_known_of_nodes_is_cut_and_counted() -> None:
    page = Page(Limits(groups=2, listed=2))
    (group,) = grouped(audited(cluster(node()), V2_LINEAR).nodes)
    known = markdown_tables.nodes(page, [group]).split("### What is known of the nodes")[1].split("</details>")[0]
    assert [line.split(" | ")[:2] for line in tables(known)[0][2:]] == [
        ["| n1", "cgroup version"],
        ["| n1", "cgroup driver"],
        ["| n1", f"4 more{CUT}"],
    ]


def test_what_a_target_changes_at_the_root_is_in_the_after_column(tmp_path: Path) -> None:
    (tmp_path / "to.yaml").write_text("- {cgroup: v2, driver: cgroupfs, root: {docker: 100}}")
    text = render(audited(cluster(node()), V1, str(tmp_path / "to.yaml")))
    known = section(text, "Nodes")
    assert "| n1 | cgroup driver | systemd | cgroupfs | stated |" in known
    assert "| n1 | what else wants CPU at the root | no other cgroup | docker (weight 100) | probable |" in known


def test_the_command_to_look_with_stays_a_command() -> None:
    """A character of ours inside it would be copied with it."""
    text = render(audited(recorded_blind()))
    assert "Look on the node with `stat -fc %T /sys/fs/cgroup` (cgroup2fs is v2, tmpfs is v1) and " in text
    assert "{match: {name: worker-b}, cgroup: v1 or v2, " in text
    page = Page(Limits())
    assert page.sentence("see `{a: {b: 1}}`") == "see `{a: {b: 1}}`"
    assert "`" not in str(page.sentence("see `{{ secret }}`")).replace("\\`", "")
    assert "`" not in str(page.sentence("see `{% secret %}`")).replace("\\`", "")
