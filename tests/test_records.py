"""The records of containers: exact numbers, ranges, and the same rows in every format."""

import csv
import io
import json
from typing import Any

import jsonschema
import polars as pl
import pytest
import yaml

from kubectl_cgaudit.audit import records, run
from kubectl_cgaudit.audit.records import SCHEMA
from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.detect import states, target
from kubectl_cgaudit.report.formats import writer
from kubectl_cgaudit.report.records import audit_schema, record_schema
from tests.support import STATES, cluster, container, golden_json, node, pod, recorded, recorded_blind

V1 = "- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.1.5}}"


def saved(objects: Cluster, rules: str = "", to: str = "v2+runtime") -> Saved:
    parsed = states.parse(rules, "test") if rules else ()
    made = run.run(objects, parsed, target.parse(to), Thresholds(), None)
    return Saved(made.audit, records.containers(made.audit, made.tables, made.judged))


def written(name: str, found: Saved) -> bytes:
    writes = writer(name)
    parts = [*writes.head(found.audit), *map(writes.records, found.containers.frames()), *writes.tail()]
    return b"".join(parts)


def rows(found: Saved) -> list[dict[str, Any]]:
    return [row for table in found.containers.frames() for row in table.to_dicts()]


KNOWN, BLIND = saved(recorded(), STATES.read_text()), saved(recorded_blind())


def test_a_record_of_the_recorded_cluster() -> None:
    (row,) = (
        row
        for row in rows(KNOWN)
        if (row["pod"], row["container"]) == ("checkout-d5491e7e7-22276", "app") and row["node"] == "worker-c"
    )
    assert list(row)[:7] == ["schema", "cluster", "cluster_uid", "time", "target", "tool_version", "complete"]
    assert (row["schema"], row["target"], row["complete"]) == ("cgaudit.container/1", "v2+runtime", True)
    assert (row["namespace"], row["workload_kind"], row["workload"]) == ("shop", "Deployment", "checkout")
    assert row["workload_effects"] == row["effects"] == ["loses", "moves", "nominal"]
    assert (row["qos"], row["handler"], row["role"], row["request_milli"], row["limit_milli"]) == (
        "Burstable",
        "default",
        "app",
        1000,
        None,
    )
    assert [
        row[f"before_{name}"] for name in ("version", "value", "share", "against_system", "in_pod", "quota_us")
    ] == [
        "v1",
        1024,
        0.249118468,
        1.170662176,
        0.909413854,
        None,
    ]
    assert [row[f"after_{name}"] for name in ("version", "value", "share", "against_system", "in_pod", "quota_us")] == [
        "v2",
        100,
        0.171779218,
        0.420859084,
        0.854700855,
        None,
    ]
    assert [row[name] for name in ("change_against_system", "change_in_pod", "change_pod_against_system")] == [
        -0.640494848,
        -0.060162927,
        -0.61748141,
    ]
    assert (row["leading_cases"], row["leading_cases_stopping"], row["when"], row["cases"]) == (1, 0, "", [])
    assert row["after_share_least"] == row["after_share_greatest"] == 0.171779218


def test_before_is_what_the_kernel_has() -> None:
    golden = {
        (each["namespace"], each["pod"], each["container"]): each
        for each in golden_json("cgroups.json")
        if each["level"] == "container"
    }
    found = {(row["namespace"], row["pod"], row["container"]): row for row in rows(KNOWN)}
    assert len(golden) >= 30
    assert set(golden) <= set(found)
    for key, truth in golden.items():
        assert found[key]["before_value"] == truth.get("shares", truth.get("weight")), key
        assert found[key]["before_quota_us"] == truth["quota_us"], key
    shop = [key for key in golden if key[0] == "shop" and key[1].startswith("checkout")]
    assert len(shop) >= 6


def test_every_container_has_one_record() -> None:
    for found in (KNOWN, BLIND):
        keys = [(row["namespace"], row["pod"], row["container"]) for row in rows(found)]
        assert len(keys) == len(set(keys)) == found.audit.container_count == 42


def test_shares_and_weights_are_no_range() -> None:
    (row,) = rows(saved(cluster(node(), pod("p", container("c", "1")))))
    assert {each["rank"] for each in row["cases"]} == set(range(2, len(row["cases"]) + 2))
    versions = {row["before_version"], *(each["before_version"] for each in row["cases"] if each["leading"])}
    if versions == {"v1", "v2"}:
        assert (row["before_value_least"], row["before_value_greatest"]) == (None, None)
    assert (row["after_value_least"], row["after_value_greatest"]) == (100, 100)


@pytest.mark.parametrize("found", [KNOWN, BLIND], ids=["known", "blind"])
def test_ranges_are_over_the_leading_cases(found: Saved) -> None:
    for row in rows(found):
        leading = [row, *(each for each in row["cases"] if each["leading"])]
        assert row["leading_cases"] == len(leading)
        shares = [each["after_share"] for each in leading if not each["stops"]]
        expected = (None, None) if None in shares or not shares else (min(shares), max(shares))
        assert (row["after_share_least"], row["after_share_greatest"]) == expected


@pytest.mark.parametrize("found", [KNOWN, BLIND], ids=["known", "blind"])
def test_all_formats_have_the_same_records(found: Saved) -> None:
    expected = rows(found)
    lines = [json.loads(line) for line in written("ndjson", found).splitlines()]
    assert lines == expected
    assert pl.read_parquet(io.BytesIO(written("parquet", found))).to_dicts() == expected
    document = json.loads(written("json", found))
    assert document["containers"] == expected
    assert yaml.safe_load(written("yaml", found)) == document
    cells = list(csv.DictReader(io.StringIO(written("csv", found).decode(), newline="")))
    assert [*cells[0]] == [name for name in SCHEMA if name != "cases"]
    assert len(cells) == len(expected)
    for row, cell in zip(expected, cells, strict=True):
        for name, value in row.items():
            if name == "cases":
                continue
            if isinstance(value, list):
                assert cell[name] == ";".join(value)
            elif isinstance(value, float):
                assert float(cell[name]) == value
            else:
                assert cell[name] == (
                    "" if value is None else str(value).lower() if value in (True, False) else str(value)
                )


def test_records_are_as_their_schemas_say() -> None:
    of_record = jsonschema.Draft202012Validator(record_schema())
    of_audit = jsonschema.Draft202012Validator(audit_schema())
    for found in (KNOWN, BLIND):
        for line in written("ndjson", found).splitlines():
            of_record.validate(json.loads(line))
        of_audit.validate(json.loads(written("json", found)))
    record = json.loads(written("ndjson", KNOWN).splitlines()[0])
    for wrong in ({**record, "node": 1}, {**record, "node": None}, {k: v for k, v in record.items() if k != "cases"}):
        with pytest.raises(jsonschema.ValidationError):
            of_record.validate(wrong)


@pytest.mark.parametrize("name", ["ndjson", "csv", "json", "yaml", "parquet", "audit"])
def test_the_same_audit_is_the_same_bytes(name: str) -> None:
    assert written(name, KNOWN) == written(name, saved(recorded(), STATES.read_text()))


def test_of_a_pod() -> None:
    found = KNOWN.containers.of_pod("shop", "checkout-d5491e7e7-22276")
    assert found["container"].to_list()[0] == "app"
    assert KNOWN.containers.of_pod("shop", "no such pod").is_empty()


HOSTILE = (
    "\x1b[31mred\x07",
    "\u202eright to left\u2066",
    "\x9b31m\x7f",
    "\U000e0041tag",
    "line\nbreak\r\n",
    'quote",\\',
    "##[add-mask]",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_of_the_cluster_acts(name: str) -> None:
    found = saved(cluster(node(name), pod(name, container(name, "1"), on=name)), V1)
    acting = [character for character in "\x1b\x07\u202e\u2066\x9b\x7f\U000e0041" if character in name]
    for format_ in ("ndjson", "json", "yaml", "csv"):
        text = written(format_, found).decode()
        assert not [character for character in acting if character in text], format_
        assert "##[" not in text
    (row,) = [json.loads(line) for line in written("ndjson", found).splitlines()]
    assert (row["pod"], row["node"], row["container"]) == (name, name, name)
    (again,) = pl.read_parquet(io.BytesIO(written("parquet", found)))["pod"]
    assert again == name
    assert yaml.safe_load(written("yaml", found))["containers"][0]["pod"] == name


@pytest.mark.parametrize("sign", [*"=+-@\t\r'", "＝", "＋", "－", "＠"])
def test_no_cell_is_a_formula(sign: str) -> None:
    name = f"{sign}1+1"
    found = saved(cluster(node(name), pod(name, container(name, "1"), on=name)), V1)
    (row,) = csv.DictReader(io.StringIO(written("csv", found).decode(), newline=""))
    for column in ("pod", "node", "container", "workload"):
        assert row[column][0] not in "=+-@\t\r\n＝＋－＠", column
        assert row[column].endswith("1+1")
    plain = saved(cluster(node(), pod(f"a{sign}b", container("c", "1"))), V1)
    (row,) = csv.DictReader(io.StringIO(written("csv", plain).decode(), newline=""))
    assert row["pod"].startswith("a")


def test_yaml_has_small_numbers_as_numbers_and_long_keys() -> None:
    handler = "h" * 1500
    objects = cluster(
        node(cpu="64"),
        pod("p", container("c", "1m"), container("d", "60"), runtimeClassName=handler),
        pod("q", container("e", "1m"), qos="BestEffort"),
    )
    found = saved(objects, V1)
    document = json.loads(written("json", found))
    assert any(row["before_share"] < 1e-4 for row in document["containers"])
    assert yaml.safe_load(written("yaml", found)) == document
