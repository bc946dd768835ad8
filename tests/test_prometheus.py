"""`-o prometheus` through Prometheus' own parser: few series, all there, none with a pod's name."""

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from kubectl_cgaudit.audit.model import CONFIDENCES, EFFECTS, Audit
from kubectl_cgaudit.report import prometheus
from tests.hostile import HOSTILE, everywhere, hand_made
from tests.pages_support import blind, recorded, small
from tests.support import container, node, pod

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
SERIES = 93


def half_read() -> Audit:
    return small(node(), pod("p", container("c", "1"), on="gone"), pod("q", container("c", "1")))


def series(audit: Audit) -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(prometheus.render(audit)):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            key = (sample.name.removeprefix("cgaudit_"), frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def value(found: Series, name: str, to: str = "v2+runtime", **labels: str) -> float:
    return found[name, frozenset({**labels, "to": to}.items())]


def test_the_recorded_cluster() -> None:
    audit = recorded()
    found = series(audit)
    assert len(found) == SERIES
    assert value(found, "info", version=audit.tool_version, schema="cgaudit.audit/1") == 1
    assert [value(found, "workloads", effect=effect) for effect in EFFECTS] == [0, 0, 5, 0, 2, 2, 3, 3]
    assert [value(found, "nodes", confidence=each) for each in CONFIDENCES] == [0, 3, 0, 0, 0]
    assert [value(found, "nodes_cgroup", cgroup=each) for each in ("v1", "v2", "unknown")] == [1, 2, 0]
    assert value(found, "findings", rule="CGA201", severity="high") == 5
    assert value(found, "findings", rule="CGA204", severity="medium") == 2
    assert value(found, "findings", rule="CGA301", severity="critical") == 0
    assert sum(number for (name, _), number in found.items() if name == "findings") == len(audit.findings) == 22
    assert [value(found, f"pods_{each}") for each in ("read", "audited", "unpredicted")] == [29, 27, 0]
    assert [value(found, f"coverage_{each}") for each in ("complete", "gaps")] == [1, 0]
    assert [value(found, "actions", kind=each) for each in ("inspect", "node", "workload")] == [0, 1, 2]
    assert [value(found, f"workloads_{each}") for each in ("unknown", "probable")] == [0, 0]
    assert value(found, "last_run_timestamp_seconds") == 1769774400


def test_the_text_is_what_the_textfile_collector_reads() -> None:
    text = prometheus.render(recorded())
    assert text.startswith(
        "# HELP cgaudit_info Which cgaudit wrote this, for which target.\n"
        "# TYPE cgaudit_info gauge\n"
        f'cgaudit_info{{version="{recorded().tool_version}",schema="cgaudit.audit/1",to="v2+runtime"}} 1\n'
    )
    assert 'cgaudit_findings{rule="CGA401",severity="low",to="v2+runtime"} 0\n' in text


def test_what_is_open_or_was_not_read() -> None:
    found = series(blind())
    assert value(found, "workloads", effect="unknown") == value(found, "workloads_unknown") == 15
    assert value(found, "nodes", confidence="unknown") == value(found, "nodes_cgroup", cgroup="unknown") == 3
    found = series(half_read())
    assert [value(found, f"coverage_{each}") for each in ("complete", "gaps")] == [0, 1]
    assert value(found, "pods_unpredicted") == 1
    assert value(found, "findings", rule="CGA001", severity="high") == 1


def test_series_are_the_same_whatever_the_cluster_holds() -> None:
    audits = [replace(each, time=None) for each in (blind(), half_read(), recorded())]
    assert len({frozenset(series(audit)) for audit in audits}) == 1
    renamed = replace(
        recorded(), workloads=tuple(replace(each, name=f"{each.name}-x") for each in recorded().workloads)
    )
    assert series(renamed) == series(recorded())


def test_rules_that_are_none_of_ours_are_one() -> None:
    strange = tuple(replace(each, rule=f"X{index}") for index, each in enumerate(recorded().findings))
    found = series(replace(recorded(), findings=strange))
    assert len(found) == SERIES + 4
    assert value(found, "findings", rule="other", severity="high") == 5


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names(name: str) -> None:
    found = series(hand_made(name, complete=False))
    (to,) = {dict(labels)["to"] for _, labels in found}
    assert to.isprintable()
    if name.isprintable():
        assert to == name
    assert len(found) == SERIES - 1
    series(everywhere(hand_made(complete=False), name))


def test_the_time_is_there_if_it_was_given() -> None:
    assert "last_run" not in prometheus.render(replace(recorded(), time=None))
    assert "last_run" not in prometheus.render(replace(recorded(), time="yesterday"))


@pytest.mark.parametrize(
    ("target", "label"), [('a"b', 'a\\"b'), ("a\\b", "a\\\\b"), ("a\nb", "a\\\\x0ab"), ('\\"', '\\\\\\"')]
)
def test_no_label_ends_before_its_end(target: str, label: str) -> None:
    text = prometheus.render(replace(recorded(), target=replace(recorded().target, to=target)))
    assert f'cgaudit_nodes_read{{to="{label}"}} 3\n' in text
