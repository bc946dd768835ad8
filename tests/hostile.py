"""An audit made by hand, in which every string that a cluster may choose is one name; and names that mean harm."""

from typing import Any

import msgspec
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import (
    SCHEMA,
    Action,
    ActionEffect,
    Audit,
    CaseSeverity,
    Change,
    Coverage,
    CpuOfNode,
    EvidenceRecord,
    ExceptedFinding,
    Finding,
    GapRecord,
    Known,
    Measure,
    NodeCase,
    NodeMoment,
    NodeRecord,
    PolicyRecord,
    QosMoment,
    Question,
    SettleCommand,
    Span,
    Subject,
    Target,
    Verdict,
    Where,
    Workload,
)

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


def hand_made(name: str = "web", *, complete: bool = True, open_: bool = False) -> Audit:
    """Return an audit of a node, two workloads and two actions in which every string of a cluster or a file is `name`."""
    whens = ("cgroup v2, x", "cgroup v1, x") if open_ else ("",)
    cases = tuple(
        NodeCase(when, rank, rank == 1, _moment("v2" if open_ and rank == 1 else "v1", name), _moment("v2", name))
        for rank, when in enumerate(whens, start=1)
    )
    node = NodeRecord(
        name=name,
        kubelet_version=name,
        container_runtime=name,
        os_image=name,
        kernel=name,
        capacity_milli=4000,
        allocatable_milli=3700,
        requested_milli=1000,
        pods=2,
        confidence="unknown" if open_ else "likely",
        known={
            "cgroup": Known(None if open_ else "v1", "unknown" if open_ else "likely", name, name),
            f"runtime:{name}": Known(name, "stated", name),
        },
        hints=(name,),
        evidence=(EvidenceRecord("cgroup", name, "likely", name, name, name),),
        contradictions=(name,),
        problems=(name,),
        cases=cases,
    )
    return Audit(
        schema=SCHEMA,
        tool_version="0.1.0",
        time=None,
        cluster={"name": name, "context": name, "uid": name},
        input="",
        target=Target(name, name, {"system-loss": 0.1, "outweighed": 10.0}, (name,)),
        verdict=Verdict({"loses": 1, "none": 1}, {"high": 1}, f"1 of 2 workloads loses CPU. {name}"),
        coverage=_coverage(name, complete=complete),
        nodes=(node,),
        questions=(
            Question(
                "cgroup",
                "unknown",
                name,
                (name,),
                Change(name, name, name, name, 0.9, 0.8, -0.1),
                (SettleCommand(name, name, name),),
                name,
            ),
        ),
        workloads=(_losing(name, whens[-1], open_=open_), _same(name)),
        findings=(_finding("CGA201", name, whens[-1], open_=open_), _finding("CGA204", name, "", severity="medium")),
        actions=(_action("node:1", name, (f"CGA201:{name}/{name}/{name}",)), _action(f"x:{name}", name, (name,))),
        container_count=2,
        policy=PolicyRecord(name, {name: name}),
        excepted=(ExceptedFinding(_finding("CGA302", name, "", severity="low"), name, None, name),),
    )


def _moment(version: str, name: str) -> NodeMoment:
    old = version == "v1"
    return NodeMoment(
        cgroup="v1" if old else "v2",
        driver="systemd",
        kubelet=name,
        kubepods=4096 if old else 157,
        system_slice=1024 if old else 100,
        root={name: 100},
        pods_per_system=4.0 if old else 1.57,
        pods_share=0.8 if old else 0.61,
        system_share=0.2 if old else 0.39,
        qos={"Burstable": QosMoment(2, 39, 0.3)},
        runtimes={name: name},
        enforced=(name,),
        services=name,
    )


def _coverage(name: str, *, complete: bool) -> Coverage:
    return Coverage(
        complete=complete,
        source=name,
        filter=name,
        gaps=() if complete else (GapRecord(name, name, name, name, (name,)),),
        notes=(name,),
        unmatched=(name,),
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
        workload_names={"Deployment": name},
        ignored_kinds={name: 2},
        duplicates=1,
    )


def _losing(name: str, when: str, *, open_: bool) -> Workload:
    share = Change(name, name, None, when, 0.3, 0.2, -1 / 3)
    system = Change(name, name, None, when, 1.25, 0.5, -0.6)
    return Workload(
        kind=name,
        namespace=name,
        name=name,
        effects=("unknown", "nominal") if open_ else ("loses", "moves"),
        other_effects=(),
        confidence="unknown" if open_ else "likely",
        pods=3,
        pods_hit=1,
        unpredicted_pods=1,
        nodes_hit=(name,),
        share=share,
        against_system=system,
        against_system_best=system,
        sure_loss=None if open_ else system,
        sure_share=None if open_ else share,
        split=Change(name, name, name, when, 0.9, 0.8, -0.1111),
        split_best=Change(name, name, name, when, 0.9, 0.9, 0.0),
        values=(Span(name, "shares", 1024, 1024, "weight", 39, 39),),
        cases=2 if open_ else 1,
    )


def _same(name: str) -> Workload:
    still = Change(name, name, None, "", 0.2, 0.2, 0.0)
    return Workload(
        kind="Deployment",
        namespace=name,
        name=f"two{name}",
        effects=(),
        other_effects=(),
        confidence="likely",
        pods=1,
        pods_hit=0,
        unpredicted_pods=0,
        nodes_hit=(),
        share=still,
        against_system=still,
        against_system_best=still,
        sure_loss=None,
        sure_share=None,
        split=None,
        split_best=None,
        values=(),
        cases=1,
    )


def _finding(rule: str, name: str, when: str, *, severity: Any = "high", open_: bool = False) -> Finding:
    about = Subject("workload", name, name, name)
    return Finding(
        id=f"{rule}:{about.key}",
        rule=rule,
        severity=severity,
        certainty="possible" if open_ else "likely",
        subject=about,
        cases=(CaseSeverity(when, 1, True, severity),),
        measures=(
            Measure("share against system.slice", "times", 1.25, 0.5),
            Measure("share of the node", "fraction", 0.3, 0.2),
        ),
        where=Where(1, 3, (name,), name, name, name),
        detail={"when": when, "cases": 1, "about": "pod", "moved": 0.1, "badness": 0.6},
        actions=("node:1",),
        title=name,
        message=name,
    )


def _action(id_: str, name: str, clears: tuple[str, ...]) -> Action:
    return Action(
        id=id_,
        kind="node",
        title=name,
        target={"nodes": [name]},
        change={},
        run=(name, f"{name}\n{name}"),
        when=name,
        effect=ActionEffect(1, 0, 0, (CpuOfNode("pods", name, 0.8, 0.61, 0.8),)),
        cost=name,
        undo=name,
        alternatives=(name,),
        who="node owners",
        clears=clears,
        lowers=(name,),
        causes=(name,),
        waits_for=(name,),
    )


def everywhere(audit: Audit, name: str) -> Audit:
    """Return the audit with this name in place of every string that a file may hold freely, keys of mappings included."""
    return msgspec.convert(_everywhere(msgspec.to_builtins(audit), "", name), Audit)


_CLOSED = {
    "severity",
    "effects",
    "confidence",
    "certainty",
    "strength",
    "cgroup",
    "beforeUnit",
    "afterUnit",
    "kind",
    "who",
    "standing",
}


def _everywhere(value: object, key: str, name: str) -> object:
    if isinstance(value, dict):
        free = key in ("known", "runtimes", "workloadNames", "ignoredKinds", "thresholds", "root", "qos", "cluster")
        return {name if free else k: _everywhere(each, k, name) for k, each in value.items()}
    if isinstance(value, list):
        return [_everywhere(each, key, name) for each in value]
    return name if isinstance(value, str) and key not in _CLOSED else value


def many(count: int, name: str = "w") -> Audit:
    """An audit of `count` workloads, a sixth as many nodes in seven groups, a finding and a tenth of an action each."""
    audit = hand_made(name)
    workload, node, finding, action = audit.workloads[0], audit.nodes[0], audit.findings[0], audit.actions[0]
    workloads = tuple(replace(workload, name=f"{name}-{index}") for index in range(count))
    return replace(
        audit,
        workloads=workloads,
        nodes=tuple(replace(node, name=f"n-{n}", allocatable_milli=4000 + n % 7) for n in range(count // 6)),
        findings=tuple(
            replace(finding, id=f"CGA201:{each.key}", subject=replace(finding.subject, name=each.name))
            for each in workloads
        ),
        actions=tuple(replace(action, id=f"a:{n}", clears=(f"CGA201:{workloads[n].key}",)) for n in range(count // 10)),
    )
