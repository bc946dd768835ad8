"""An audit made by hand, in which every string that a cluster may choose is one name; and names that mean harm."""

from kubectl_cgaudit.judge.audit import (
    SCHEMA_VERSION,
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
    in_ranks,
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
_VERDICT = "1 of 2 workloads loses."


def moment(version: str, value: int, share_: float, system: float, in_pod: float | None = None) -> Moment:
    default = 1024 if version == "v1" else 100
    return Moment(version, value, value / default, share_, system, in_pod, None)  # type: ignore[arg-type]


def hand_made(name: str = "web", *, complete: bool = True, when: tuple[str, ...] = ("",)) -> Audit:
    """An audit of one node and two workloads in which every cluster string is `name`."""
    before = NodeMoment("v1", 4096, 1024, 4.0, 0.8, 0.2, "1.33.1 (linear)", {name: "runc 1.1.5 (linear)"})
    after = NodeMoment("v2", 157, 100, 1.57, 0.61, 0.39, "1.33.1 (linear)", {name: "runc 1.3.2 (quadratic)"})
    first, *others = (
        NodeCase(w, after if "v2" in w else before, after, rank=rank, leading=True) for rank, w in enumerate(when, 1)
    )
    cases = first.when, first.before, first.after, first.stops, tuple(others)
    known = {
        "cgroup": Known(None if len(when) > 1 else "v1", "unknown" if len(when) > 1 else "likely", name),
        f"runtime:{name}": Known("runc 1.1.5 (linear)", "stated", name),
    }
    node = NodeAudit(name, name, name, name, name, 4000, 2, "stated", known, (name,), (), (), (), *cases)
    losing, same = _workload(name, "Deployment", when), _unchanged(name, when)
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
        schema_version=SCHEMA_VERSION,
        tool_version="0.1.0",
        generated_at=None,
        scenario=scenario,
        verdict=verdict,
        coverage=coverage,
        nodes=(node,),
        settle=(),
        workloads=(losing, same),
        findings=(finding,),
    )


def _workload(name: str, kind: str, when: tuple[str, ...]) -> WorkloadAudit:
    def changes(in_pod: tuple[float, float] | None) -> tuple[CaseChange, ...]:
        was, will = in_pod or (None, None)
        new = moment("v2", 39, 0.2, 0.5, will)
        return tuple(
            CaseChange(w, new if "v2" in w else moment("v1", 1024, 0.3, 1.25, was), new, rank=rank, leading=True)
            for rank, w in enumerate(when, 1)
        )

    container = ContainerAudit(name, name, 1000, None, *in_ranks(changes((0.9, 0.81))))
    pod = PodAudit(name, name, name, name, "stated", ("loses",), *in_ranks(changes(None)), (container,))
    open_ = len(when) > 1
    worst = Change(name, None, name, when[0], 1.25, 0.5, -0.6)
    best = Change(name, None, name, when[-1], 0.5, 0.5, 0.0) if open_ else worst
    return WorkloadAudit(
        kind=kind,
        namespace=name,
        name="one",
        effects=("unknown", "nominal") if open_ else ("loses", "moves", "nominal"),
        confidence="stated",
        pod_count=1,
        unpredicted_pods=0,
        share=Change(name, None, name, "", 0.3, 0.2, -1 / 3),
        against_system=worst,
        against_system_best=best,
        inside_pod=Change(name, name, name, when[0], 0.9, 0.81, -0.1),
        nominal=(
            NominalChange(name, Span(1024, 1024), Span(39, 39), Span(0.39, 1), Span(0.39, 0.39), "shares", "weight"),
        ),
        pods=(pod,),
        inside_pod_best=Change(name, name, name, when[-1], 0.9, 0.9, 0.0) if open_ else None,
        possibilities=len(when),
    )


def _unchanged(name: str, when: tuple[str, ...]) -> WorkloadAudit:
    still = moment("v2", 39, 0.2, 0.5)
    cases = tuple(CaseChange(w, still, still, rank=rank, leading=True) for rank, w in enumerate(when, 1))
    pod = PodAudit(name, name, "Burstable", name, "stated", (), *in_ranks(cases), ())
    change = Change(name, None, name, "", 0.5, 0.5, 0.0)
    return WorkloadAudit("Deployment", name, "two", (), "stated", 1, 0, change, change, change, None, (), (pod,))
