"""What reports of several formats say in the same words."""

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import (
    Change,
    Known,
)
from kubectl_cgaudit.judge.rules.catalogue import CONTRADICTED, UNKNOWN_STATE
from kubectl_cgaudit.report import appendix, html, markdown
from kubectl_cgaudit.report.by_rule import rules
from kubectl_cgaudit.report.content import (
    coverage_facts,
    effect_words,
    inside,
    node_cases,
    nominals,
    share,
    unsettled,
)
from kubectl_cgaudit.report.inside import moving
from kubectl_cgaudit.report.known import known_rows, sureness
from tests.hostile import hand_made
from tests.support import audited, cluster, container, node, pod

ONE_CPU = container("c", "1")


def test_hand_made_rows() -> None:
    known, open_ = hand_made().workloads[0], hand_made(when=("cgroup v1, a", "cgroup v2, a")).workloads[0]
    assert effect_words(known) == (
        "loses against system processes; also: CPU moves inside its pod, the number in cpu.weight changes"
    )
    assert effect_words(open_) == "cannot be said; also: the number in cpu.weight changes"
    assert (share(known), share(open_)) == ("30% -> 20%", "30% -> 20% in the worst case")
    assert (inside(known), inside(open_)) == ("web -10%", "web -10%..0%")
    assert nominals(known) == ["web: shares 1024 -> weight 39 (0.39..1 -> 0.39 x default)"]
    assert nominals(open_) == ["web: shares 1024 -> weight 39 (0.39..1 -> 0.39 x default)"]


def test_an_effect_under_the_thresholds_is_not_called_nothing() -> None:
    workload = hand_made().workloads[1]
    assert effect_words(workload) == "nothing changes"
    change = Change("web", None, "web", "", 0.5, 0.47, -0.06)
    assert effect_words(replace(workload, against_system=change)) == ("nothing changes beyond the thresholds")


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
        "Filter": "only what matches web is reported; the other pods are read as siblings",
        "Finished pods, which want no CPU": "0",
        "Pods without a node, not predicted": "web",
        "Windows nodes, which have no cgroups": "web (1 pod, not predicted)",
        "Virtual nodes, which have no cgroups to predict": "web (2 pods, not predicted)",
        "Deployment names": "derived from the pod-template-hash",
        "Objects of no use to the audit": "2 web",
        "Objects read more than once": "1",
    }


def test_how_many_cannot_be_said_is_what_the_verdict_says() -> None:
    """Those that also lose were left out: their strongest effect is another."""
    twins = [pod(f"{name}-{on}", ONE_CPU, on=on, owner=("StatefulSet", name)) for name in "de" for on in ("n1", "n2")]
    known = "- {match: {name: n1}, cgroup: v1, driver: systemd, runtimes: {default: linear}}"
    result = audited(cluster(node("n1"), node("n2"), *twins, pod("f", ONE_CPU, on="n2")), known)
    said = "For 3 workloads, 2 of which also lose, it cannot be said of every pod what it gains or loses"
    assert said in result.verdict.sentence
    assert unsettled(result.workloads) == f"{said}."
    assert f"## How sure\n\n**{said}.** That is not a pass: " in markdown.render(result)
    assert f"<strong>? {said}.</strong> That is not a pass: " in html.render(result)


def test_what_only_may_not_start_is_not_counted_with_unknown_nodes() -> None:
    objects = cluster(node(kubelet="v1.33.1"), pod("p", container("c", "10m", "15m")))
    result = audited(objects, "- {cgroup: v1, runtimes: {default: linear}}", "runc=1.3.6")
    counts = result.verdict.workloads
    assert (counts["unknown"], counts["may-stop"], unsettled(result.workloads)) == (0, 1, "")


def test_findings_of_one_rule_with_other_titles_have_their_own_reason() -> None:
    """Evidence that contradicts itself stood under why nothing is known, or the other way round."""
    seen = {"runtimeHandlers": [{"name": "", "features": {"recursiveReadOnlyMounts": True, "userNamespaces": False}}]}
    older = node("n2", containerRuntimeVersion="containerd://2.0.1")
    older["status"] |= seen
    states = "- {match: {name: n2}, cgroup: v2, driver: systemd, runtimes: {default: quadratic}}"
    result = audited(cluster(node("n1"), older, pod("p", ONE_CPU), pod("q", ONE_CPU, on="n2")), states)
    groups = [each for each in rules(result.findings, 10) if each.rule == "CGA102"]
    assert [(each.title, each.why, each.first, each.amount) for each in groups] == [
        (CONTRADICTED.title, CONTRADICTED.why, True, 1),
        (UNKNOWN_STATE.title, UNKNOWN_STATE.why, False, 1),
    ]
    assert [each.groups[0].findings[0].subject.name for each in groups] == ["n2", "n1"]
    shown = html.render(result)
    assert (shown.count('id="CGA102"'), shown.count("<span>evidence contradicts itself</span>")) == (1, 1)
    assert shown.count("<span>node state not known</span>") == 1


# On an unknown node the runtime may move 2.2% of a's part of its pod, less than the threshold.
LITTLE = (node(), pod("p", container("a", "1"), container("b", "800m")))
MUCH = pod("q", container("a", "1"), container("b", "100m"))


@pytest.mark.parametrize(
    ("thresholds", "names"),
    [((), ["q"]), (("pod-move=0.5%",), ["q", "p"]), (("pod-move=20%",), [])],
)
def test_an_unknown_node_alone_is_no_move_inside_a_pod(thresholds: tuple[str, ...], names: list[str]) -> None:
    audit = audited(cluster(*LITTLE, MUCH), "", "v2+runtime", *thresholds)
    assert {each.effect for each in audit.workloads} == {"unknown"}
    assert [each.workload.name for each in moving(audit)] == names


def test_an_audit_that_names_no_threshold_is_taken_to_have_the_usual_one() -> None:
    audit = audited(cluster(*LITTLE, MUCH), "", "v2+runtime", "pod-move=20%")
    unnamed = replace(audit, scenario=replace(audit.scenario, thresholds={}))
    assert [each.workload.name for each in moving(unnamed)] == ["q"]


def test_of_a_pod_that_does_not_run_nothing_is_said_after() -> None:
    states = "- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.2.6}}"
    result = audited(cluster(node(kubelet="v1.34.1"), pod("p", container("c", "50m", "77m"))), states, "kubelet=1.35")
    of_pod, of_container = appendix.rows(result.workloads)
    before = ("shares 51 (0.0498 x) -> stops", "80% -> stops", "4 -> stops")
    assert (of_pod.nominal, of_pod.share, of_pod.times_system) == before
    assert (of_pod.in_pod, of_pod.quota) == ("", "77m -> stops")
    assert (of_container.nominal, of_container.share, of_container.times_system) == before
    assert (of_container.in_pod, of_container.quota) == ("100% -> stops", "77m -> stops")


def test_a_quota_has_all_its_digits() -> None:
    result = audited(cluster(node(cpu="2000"), pod("p", container("c", "50m", "1234567m"))), "- {cgroup: v2}")
    assert [row.quota for row in appendix.rows(result.workloads)][-1] == "1234570m"


def test_the_weight_of_system_slice_has_its_unit_before_and_after() -> None:
    of_node = audited(cluster(node()), "- {cgroup: v1}").nodes[0]
    (row,) = (each for each in known_rows(of_node) if each[0] == "system.slice")
    assert row[1:3] == ("shares 1024", "weight 100")
