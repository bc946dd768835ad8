"""The Markdown report's tables of nodes, workloads and containers, each cut where its limit is."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from kubectl_cgaudit.judge.audit import Effect, WorkloadAudit
from kubectl_cgaudit.report import content
from kubectl_cgaudit.report.appendix import Row
from kubectl_cgaudit.report.cuts import first
from kubectl_cgaudit.report.groups import NodeGroup
from kubectl_cgaudit.report.inside import Inside, Slice
from kubectl_cgaudit.report.known import known_rows
from kubectl_cgaudit.report.markdown_text import CUT, Live, Page, bold, folded, left_out, paragraphs
from kubectl_cgaudit.report.words import EFFECT_WORDS, against_system, arrow, counted, percent

_NAMED = 3
_SLICES = 6
_INSIDE_LEGEND = (
    "Most first, each by its worst pod and possibility. A new runtime alone leaves the pod's own CPU as it is. Number: what "
    "cpu.shares or cpu.weight shows; it counts only among the containers of the pod."
)
_APPENDIX_LEGEND = (
    "Pods of a workload that show the same are one row. Number: what cpu.shares or cpu.weight shows, and how many times the "
    "default it is. The rest is when everything wants CPU."
)


def nodes(page: Page, groups: Sequence[NodeGroup]) -> str:
    """Pods against system processes, a row a group of equal nodes and possibility."""
    if not groups:
        return "No Linux node was audited."
    shown, more = first(groups, page.limits.groups)
    headers = (
        "Nodes",
        "How sure",
        "If",
        "cgroup",
        "kubepods : system.slice",
        "Pods : system",
        "CPU for pods",
        "CPU for system.slice",
    )
    rows = [
        (
            _nodes(page, group, _NAMED),
            _open(page, group.node.confidence, group.node.confidence),
            when,
            content.of_node(case, lambda moment: moment.cgroup),
            content.root_values(case),
            content.ratios(case),
            content.of_node(case, lambda moment: percent(moment.pods_share)),
            content.of_node(case, lambda moment: percent(moment.system_share)),
        )
        for group in shown
        for when, case in content.node_cases(group.node)
    ]
    legend = "Equal nodes are one row, the least surely known first. CPU as a fraction of the node's when everything wants CPU."
    away = sum(len(group.nodes) for group in groups[len(shown) :])
    cut = left_out(f"{counted(more, 'more group')} with {counted(away, 'node')}" if more else "")
    return paragraphs([page.table(headers, rows), legend, cut, _known(page, shown), _described(page, shown)])


def _nodes(page: Page, group: NodeGroup, most: int) -> Live:
    count = f"{len(group.nodes)} nodes: " if len(group.nodes) > 1 else ""
    return Live(count + page.names(group.names, most))


def _open(page: Page, text: str, confidence: str) -> Live:
    return bold(page.name(text)) if confidence == "unknown" else page.name(text)


def _known(page: Page, groups: Iterable[NodeGroup]) -> str:
    headers = ("Nodes", "What", "Now", "After", "How sure", "From, on the first of them")
    rows: list[tuple[str, ...]] = []
    for group in groups:
        known, more = first(known_rows(group.node), page.limits.listed)
        rows += [
            (
                _nodes(page, group, 1),
                what,
                _open(page, value, confidence),
                after,
                _open(page, confidence, confidence),
                page.text(source),
            )
            for what, value, after, confidence, source in known
        ]
        rows += [(_nodes(page, group, 1), Live(f"{more} more{CUT}"), *[Live()] * 4)] if more else []
    table = page.table(headers, rows)
    return folded("What is known of the nodes, and on what ground", f"### What is known of the nodes\n\n{table}")


def _described(page: Page, groups: Iterable[NodeGroup]) -> str:
    headers = ("Nodes", "kubelet", "Container runtime", "OS", "Kernel", "Allocatable CPU of each", "Pods", "Hints")
    rows = []
    for group in groups:
        cut = CUT if len(group.nodes) > page.limits.listed else ""
        rows.append(
            (
                Live(_nodes(page, group, page.limits.listed) + cut),
                group.node.kubelet_version,
                group.node.container_runtime,
                page.names(group.distinct("os_image"), _NAMED),
                page.names(group.distinct("kernel"), _NAMED),
                f"{group.node.allocatable_milli}m",
                str(group.pod_count),
                page.names(group.hints, _NAMED),
            )
        )
    return folded(
        "What the API says of the nodes", f"### What the API says of the nodes\n\n{page.table(headers, rows)}"
    )


def workloads(page: Page, every: Sequence[WorkloadAudit]) -> str:
    """The workloads that change, the worst first; the others are only counted."""
    if not every:
        return "No workload was audited: nothing can be said about workloads."
    changing = [workload for workload in every if workload.effect != "none"]
    shown, more = first(changing, page.limits.workloads)
    headers = (
        "Workload",
        "Kind",
        "Pods",
        "Effect",
        "How sure",
        "Against system",
        "CPU of the node, where it changes most",
    )
    rows = [
        (
            workload.title,
            workload.kind,
            content.pods(workload),
            _strong(page, content.effect_words(workload), workload.effect),
            workload.confidence,
            against_system(workload),
            content.share(workload),
        )
        for workload in shown
    ]
    same = len(every) - len(changing)
    calm = f"Not listed: {same} of {counted(len(every), 'workload')} in which {EFFECT_WORDS['none']}." if same else ""
    cut = left_out(_by_effect(changing[len(shown) :]) if more else "")
    return paragraphs([page.table(headers, rows), cut, calm, " ".join(_legend()) if rows else ""])


def _legend() -> Iterable[str]:
    told = ("Inside the pod", "Nominal")
    return (line for line in content.WORKLOAD_LEGEND if not line.startswith(told))


def _by_effect(away: Iterable[WorkloadAudit]) -> str:
    effects: Counter[str] = Counter(workload.effect for workload in away)
    return f"{counted(sum(effects.values()), 'more workload')} ({content.effect_counts(effects)})"


def _strong(page: Page, text: str, effect: Effect) -> Live:
    if effect not in ("stops", "may-stop", "loses", "unknown"):
        return page.text(text)
    strongest, separator, also = text.partition("; ")
    return Live(bold(page.text(strongest)) + separator + page.text(also))


def inside_pods(page: Page, moving: Sequence[Inside]) -> str:
    """The workloads between whose containers CPU moves or may move, the worst first."""
    if not moving:
        return "No container is known to lose CPU to another one of its pod beyond the threshold."
    shown, more = first(moving, page.limits.cards)
    headers = ("Workload", "Kind", "Worst pod", "If", "Each container's part of the pod", "Number, no CPU share")
    rows = [
        (
            each.workload.title,
            each.workload.kind,
            Live(f"{page.name(each.pod)} on {page.name(each.node)}"),
            each.when,
            _slices(page, each, lambda part: f"{part.name} {arrow(*part.numbers)} ({part.change})"),
            _slices(page, each, lambda part: f"{part.name} {part.nominal}"),
        )
        for each in shown
    ]
    cut = left_out(counted(more, "more workload") if more else "")
    return paragraphs([page.table(headers, rows), cut, _INSIDE_LEGEND])


def _slices(page: Page, each: Inside, write: Callable[[Slice], str]) -> Live:
    shown, more = first(each.slices, min(_SLICES, page.limits.listed))
    return Live("; ".join(page.name(write(part)) for part in shown) + (f" and {more} more{CUT}" if more else ""))


def appendix(page: Page, rows: Sequence[Row], every: Sequence[WorkloadAudit]) -> str:
    """Every pod and container, before and after. `rows` holds all rows of the first workloads of `every`."""
    headers = ("Workload", "Pods", "Part", "If", "Number", "CPU of the node", "x system.slice", "Of its pod", "Quota")
    shown, more = first(rows, page.limits.containers)
    body = [
        (
            row.workload.title,
            page.text(row.where),
            f"{row.container} ({row.role})" if row.container else "the pod",
            row.when,
            row.nominal,
            row.share,
            row.times_system,
            row.in_pod,
            row.quota,
        )
        for row in shown
    ]
    if not shown:
        return "No pod was predicted."
    last = shown[-1].workload
    of_last = sum(row.workload is last for row in rows[len(shown) :]) if more else 0
    away = every[next(index for index, each in enumerate(every) if each is last) + 1 :]
    pods = sum(workload.pod_count for workload in away)
    cut = left_out(
        f"{counted(of_last, 'more row')} of {page.name(last.title)}" if of_last else "",
        f"{counted(len(away), 'more workload')} with {counted(pods, 'pod')}" if away else "",
    )
    return paragraphs([_APPENDIX_LEGEND, page.table(headers, body), cut])
