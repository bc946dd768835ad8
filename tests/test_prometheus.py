"""`-o prometheus` through Prometheus' own parser: few series, all there, none with a pod's name."""

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.judge.audit import Audit
from kubectl_cgaudit.report import prometheus
from tests.hostile import HOSTILE, hand_made
from tests.support import RECORDED_FLAGS, audited, cluster, container, node, pod
from tests.test_table import BLIND, RECORDED, renamed

HALF_READ = audited(cluster(node(), pod("p", container("c", "1"), on="gone"), pod("q", container("c", "1"))))
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series(audit: Audit) -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(prometheus.render(audit)):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            assert sample.timestamp is None
            key = (sample.name.removeprefix("cgaudit_"), frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def value(found: Series, name: str, to: str = "v2+runtime", **labels: str) -> float:
    return found[name, frozenset({**labels, "to": to}.items())]


def test_the_recorded_cluster() -> None:
    found = series(RECORDED)
    assert len(found) == 89
    assert value(found, "info", version=RECORDED.tool_version, schema_version=RECORDED.schema_version) == 1
    effects = ("stops", "may-stop", "loses", "unknown", "moves", "gains", "nominal", "none")
    assert [value(found, "workloads", effect=effect) for effect in effects] == [0, 0, 5, 0, 2, 2, 3, 3]
    ladder = ("certain", "stated", "likely", "probable", "unknown")
    assert [value(found, "nodes", confidence=each) for each in ladder] == [0, 3, 0, 0, 0]
    assert [value(found, "nodes_cgroup", cgroup=each) for each in ("v1", "v2", "unknown")] == [1, 2, 0]
    assert value(found, "findings", rule="CGA201", severity="high") == 5
    assert value(found, "findings", rule="CGA204", severity="medium") == 2
    assert value(found, "findings", rule="CGA301", severity="critical") == 0
    assert sum(number for (name, _), number in found.items() if name == "findings") == len(RECORDED.findings) == 22
    assert [value(found, f"pods_{each}") for each in ("read", "audited", "unpredicted")] == [29, 27, 0]
    assert [value(found, f"coverage_{each}") for each in ("complete", "gaps")] == [1, 0]
    assert value(found, "nodes_read") == 3


def test_the_text_is_what_the_textfile_collector_reads() -> None:
    text = prometheus.render(RECORDED)
    assert text.startswith(
        "# HELP cgaudit_info Which cgaudit wrote this, and the scenario it judged.\n"
        "# TYPE cgaudit_info gauge\n"
        f'cgaudit_info{{version="{RECORDED.tool_version}",schema_version="{RECORDED.schema_version}",to="v2+runtime"}} 1\n'
    )
    assert text.endswith('cgaudit_findings{rule="CGA401",severity="low",to="v2+runtime"} 0\n')


def test_what_is_open_or_was_not_read() -> None:
    found = series(BLIND)
    assert value(found, "workloads", effect="unknown") == BLIND.verdict.workloads["unknown"] > 10
    assert value(found, "nodes", confidence="unknown") == value(found, "nodes_cgroup", cgroup="unknown") == 3
    found = series(HALF_READ)
    assert [value(found, f"coverage_{each}") for each in ("complete", "gaps")] == [0, 1]
    assert value(found, "pods_unpredicted") == 1
    assert value(found, "findings", rule="CGA001", severity="high") == 1


def test_series_are_the_same_whatever_the_cluster_holds() -> None:
    assert set(series(BLIND)) == set(series(HALF_READ)) == set(series(RECORDED))
    assert series(renamed(RECORDED, lambda name: f"{name}-x")) == series(RECORDED)


def test_rules_that_are_none_of_ours_are_one() -> None:
    strange = tuple(replace(each, rule=f"X{index}") for index, each in enumerate(RECORDED.findings))
    found = series(replace(RECORDED, findings=strange))
    assert len(found) == 93
    assert value(found, "findings", rule="other", severity="high") == 5


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names(name: str) -> None:
    found = series(hand_made(name, complete=False))
    assert len(found) == 89
    (to,) = {dict(labels)["to"] for _, labels in found}
    assert to.isprintable()
    if name.isprintable():
        assert to == name


def test_the_time_is_there_if_it_was_given(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert run([*RECORDED_FLAGS, "-o", "prometheus"]) == 0
    assert 'cgaudit_last_run_timestamp_seconds{to="v2+runtime"} 1700000000\n' in capsys.readouterr().out
    assert "last_run" not in prometheus.render(RECORDED)
    assert "last_run" not in prometheus.render(replace(RECORDED, generated_at="yesterday"))


@pytest.mark.parametrize(
    ("target", "label"), [('a"b', 'a\\"b'), ("a\\b", "a\\\\b"), ("a\nb", "a\\\\x0ab"), ('\\"', '\\\\\\"')]
)
def test_no_label_ends_before_its_end(target: str, label: str) -> None:
    text = prometheus.render(replace(RECORDED, scenario=replace(RECORDED.scenario, to=target)))
    assert f'cgaudit_nodes_read{{to="{label}"}} 3\n' in text


def test_what_loses_and_is_unknown_in_part_is_counted_as_unknown_too() -> None:
    twins = [pod(f"d-{on}", container("c", "1"), on=on, owner=("StatefulSet", "d")) for on in ("n1", "n2")]
    objects = cluster(node("n1"), node("n2"), *twins)
    found = series(audited(objects, "- {match: {name: n1}, cgroup: v1, runtimes: {default: linear}}"))
    effects = ("loses", "unknown")
    assert [value(found, "workloads", effect=effect) for effect in effects] == [1, 0]
    assert value(found, "workloads_unknown") == 1
    assert value(series(RECORDED), "workloads_unknown") == 0
