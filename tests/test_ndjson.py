"""`-o ndjson`: as its schema says, and as DuckDB reads it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.judge.audit import Audit, PodAudit
from kubectl_cgaudit.report import csv, data, ndjson
from kubectl_cgaudit.report.pieces import chunks
from tests.hostile import HOSTILE, hand_made
from tests.support import RECORDED_FLAGS, audited, cluster, container, node, pod, rendered
from tests.test_table import BLIND, RECORDED

FILE = Path(ndjson.__file__).with_name("container.schema.json")
DOCS = Path(__file__).parent.parent / "docs" / "outputs.md"
SCHEMA = json.loads(FILE.read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
FIELDS = tuple(SCHEMA["$defs"]["ContainerRecord"]["properties"])
HALF_READ = audited(cluster(node(), pod("p", container("c", "1"), on="gone"), pod("q", container("c", "1"))))


def records(audit: Audit) -> list[dict[str, Any]]:
    *lines, end = rendered("ndjson", audit).split("\n")
    assert end == ""
    found = [json.loads(line) for line in lines]
    for record in found:
        VALIDATOR.validate(record)
        assert tuple(record) == FIELDS
        assert not any(isinstance(value, dict) for value in record.values())
    return found


def queried(path: Path, question: str) -> list[Any]:
    return duckdb.sql(question.replace("FILE", f"read_ndjson('{path}')")).fetchall()


def test_the_schema_is_up_to_date_and_refuses_what_is_wrong() -> None:
    assert FILE.read_text() == ndjson.schema()
    record = records(RECORDED)[0]
    for wrong in ({**record, "cases": "1"}, {**record, "node": 1}, {k: v for k, v in record.items() if k != "node"}):
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate(wrong)


def test_the_recorded_cluster() -> None:
    (record,) = [
        each for each in records(RECORDED) if (each["pod"], each["container"]) == ("checkout-d5491e7e7-22276", "app")
    ]
    assert {key: value for key, value in record.items() if value is not None} == {
        "schema_version": RECORDED.schema_version,
        "scenario": "v2+runtime",
        "namespace": "shop",
        "workload_kind": "Deployment",
        "workload": "checkout",
        "effect": "loses",
        "effects": ["loses", "moves", "nominal"],
        "other_effects": [],
        "confidence": "stated",
        "unpredicted_pods": 0,
        "pod": "checkout-d5491e7e7-22276",
        "node": "worker-c",
        "qos": "Burstable",
        "handler": "default",
        "pod_effects": ["loses", "moves", "nominal"],
        "pod_confidence": "stated",
        "container": "app",
        "role": "app",
        "request_milli": 1000,
        "cases": 1,
        "cases_stopping": 0,
        "before_version": "v1",
        "before_value_least": 1024,
        "before_value_greatest": 1024,
        "before_share_least": 0.249118468,
        "before_share_greatest": 0.249118468,
        "before_against_system_least": 1.170662176,
        "before_against_system_greatest": 1.170662176,
        "before_in_pod_least": 0.909413854,
        "before_in_pod_greatest": 0.909413854,
        "after_version": "v2",
        "after_value_least": 100,
        "after_value_greatest": 100,
        "after_share_least": 0.171779218,
        "after_share_greatest": 0.171779218,
        "after_against_system_least": 0.420859084,
        "after_against_system_greatest": 0.420859084,
        "after_in_pod_least": 0.854700855,
        "after_in_pod_greatest": 0.854700855,
        "change_against_system_least": -0.640494848,
        "change_against_system_greatest": -0.640494848,
        "change_in_pod_least": -0.060162927,
        "change_in_pod_greatest": -0.060162927,
        "pod_change_against_system_least": -0.61748141,
        "pod_change_against_system_greatest": -0.61748141,
    }


@pytest.mark.parametrize("audit", [RECORDED, BLIND], ids=["known", "open"])
def test_every_container_has_one_record(audit: Audit) -> None:
    expected = [
        (workload.title, each.name, container_.name, len(container_.cases))
        for workload in audit.workloads
        for each in workload.pods
        for container_ in each.containers
    ]
    found = [(f"{r['namespace']}/{r['workload']}", r["pod"], r["container"], r["cases"]) for r in records(audit)]
    assert found == expected
    assert len(found) > 30


def test_an_open_question_is_a_range() -> None:
    (record,) = records(audited(cluster(node(), pod("p", container("c", "1")))))
    assert (record["cases"], record["effect"], record["before_version"]) == (4, "unknown", "v1;v2")
    assert (record["before_value_least"], record["before_value_greatest"]) == (None, None)
    assert (record["change_against_system_least"], record["change_against_system_greatest"]) == (-0.6075, 0.0)


def test_pods_that_could_not_be_predicted_are_a_record_without_container() -> None:
    unseen, seen = sorted(records(HALF_READ), key=lambda record: str(record["workload"]))
    assert (unseen["workload"], unseen["effect"], unseen["unpredicted_pods"], unseen["cases"]) == ("p", "unknown", 1, 0)
    assert {key for key, value in unseen.items() if value is not None} == {
        *(
            "schema_version",
            "scenario",
            "namespace",
            "workload_kind",
            "workload",
            "effect",
            "effects",
            "other_effects",
            "confidence",
        ),
        *("unpredicted_pods", "cases", "cases_stopping", "pod_effects"),
    }
    assert (seen["workload"], seen["container"], seen["unpredicted_pods"]) == ("q", "c", 0)


def test_a_pod_without_containers_has_a_record() -> None:
    workload = RECORDED.workloads[0]
    bare = replace(workload, pods=(replace(workload.pods[0], containers=()),))
    (record,) = records(replace(RECORDED, workloads=(bare,)))
    assert (record["pod"], record["container"], record["cases"]) == (workload.pods[0].name, None, 0)


class Once:
    """Pods that are made while they are read, and can be read once."""

    def __init__(self, pods: tuple[PodAudit, ...]) -> None:
        self.pods, self.passes = pods, 0

    def __iter__(self) -> Iterator[PodAudit]:
        self.passes += 1
        return iter(self.pods)


def test_pods_are_read_once_for_all_formats() -> None:
    workload = RECORDED.workloads[0]
    pods = Once(workload.pods)
    lazy = replace(RECORDED, workloads=(replace(workload, pods=pods),))
    written: list[list[str]] = [[], [], []]
    made = [ndjson.pieces(lazy), csv.pieces(lazy), data.json_pieces(lazy)]
    assert [*chunks(made, lazy, lambda place, text: written[place].append(text) or "")]
    assert "".join(written[0]).count("\n") == sum(len(each.containers) for each in workload.pods)
    assert pods.passes == 1


@pytest.mark.parametrize("audit", [RECORDED, BLIND], ids=["known", "open"])
def test_duckdb_counts_what_the_report_counts(audit: Audit, tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text(rendered("ndjson", audit))
    counted = "select effect, count(distinct (namespace, workload_kind, workload)) from FILE group by effect"
    assert dict(queried(path, counted)) == {name: count for name, count in audit.verdict.workloads.items() if count}
    pods = "select count(distinct (namespace, pod)), sum(unpredicted_pods) from FILE"
    assert queried(path, pods) == [(audit.coverage.pods_audited, 0)]


def test_the_documented_question_tells_whom_to_warn(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text(rendered("ndjson", RECORDED))
    (question,) = re.findall(r"```text\n(select .*?);\n```", DOCS.read_text(), re.DOTALL)
    assert queried(path, question.replace("read_ndjson('audit.ndjson')", "FILE")) == [
        ("data", "loses", 1),
        ("edge", "moves", 2),
        ("kube-system", "loses", 1),
        ("platform", "gains", 1),
        ("platform", "loses", 1),
        ("shop", "gains", 1),
        ("shop", "loses", 2),
    ]


def documented() -> dict[str, tuple[str, bool]]:
    """The type and whether it may be null, by field, as docs/outputs.md says."""
    rows = re.findall(r"^\| `([a-z_`, ]+)` \| ([A-Z\[\]]+) \| (null|) ?\|", DOCS.read_text(), re.MULTILINE)
    return {name: (type_, null == "null") for names, type_, null in rows for name in names.split("`, `")}


def test_the_documented_types_are_those_of_the_schema() -> None:
    kinds = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "array": "VARCHAR[]"}
    said: dict[str, tuple[str, bool]] = {}
    for name, field in SCHEMA["$defs"]["ContainerRecord"]["properties"].items():
        options = field.get("anyOf", [field])
        enums = [value for option in options for value in option.get("enum", ())]
        types = {option["type"] for option in options if "type" in option} | ({"string"} if enums else set())
        null = "null" in types or None in enums
        (type_,) = types - {"null"}
        said[name] = (kinds[type_], null)
    assert documented() == said


@pytest.mark.parametrize("audit", [RECORDED, BLIND], ids=["known", "open"])
def test_duckdb_reads_it_with_the_documented_types(audit: Audit, tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text(rendered("ndjson", audit))
    guessed = dict(row[:2] for row in duckdb.sql(f"describe select * from read_ndjson('{path}')").fetchall())
    # A column that is null, or an empty list, in every record has no type of its own.
    assert {name: kind for name, kind in guessed.items() if kind not in ('"NULL"', "JSON", "JSON[]")}.items() <= {
        name: type_ for name, (type_, _) in documented().items()
    }.items()
    columns = {name: type_ for name, (type_, _) in documented().items()}
    read = duckdb.read_json(str(path), format="newline_delimited", columns=columns)
    assert [dict(zip(read.columns, row, strict=True)) for row in read.fetchall()] == records(audit)


def test_every_value_has_the_type_of_its_field() -> None:
    lines = rendered("ndjson", BLIND).splitlines()
    assert len(lines) == len(records(BLIND)) > 30
    for line in lines:
        assert msgspec.json.encode(msgspec.json.decode(line, type=ndjson.ContainerRecord)).decode() == line


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names(name: str) -> None:
    found = records(hand_made(name))
    assert {record["namespace"] for record in found} == {name}
    assert found[0]["container"] == name


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, "-o", "ndjson"]) == 0
    assert capsys.readouterr().out == rendered("ndjson", RECORDED)
