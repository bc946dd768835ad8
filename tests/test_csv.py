"""`-o csv`: a row a container, nothing cut, nothing that a spreadsheet would run."""

import csv as reader
import io
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.judge.audit import Audit
from kubectl_cgaudit.judge.figures import of_audit
from kubectl_cgaudit.report import csv
from kubectl_cgaudit.report.escape import visible
from tests.hostile import hand_made
from tests.support import RECORDED_FLAGS, audited, cluster, container, node, pod, rendered
from tests.test_table import BLIND, RECORDED, renamed

FORMULAS = "=+-@\t\r\n＝＋－＠:"


def parsed(text: str) -> list[dict[str, str]]:
    return list(reader.DictReader(io.StringIO(text, newline="")))


def original(cell: str) -> str:
    return cell.removeprefix("'")


def test_the_recorded_cluster() -> None:
    text = rendered("csv", RECORDED)
    assert text.startswith(
        "namespace,workload_kind,workload,effects,other_effects,confidence,pod,node,qos,handler,pod_effects,container,role,"
    )
    lines = text.split("\r\n")
    assert lines[-1] == ""
    assert "\n" not in "".join(lines)
    assert next(line for line in lines if "checkout-d5491e7e7-22276,worker-c" in line and ",app,app," in line) == (
        "shop,Deployment,checkout,loses;moves;nominal,,stated,checkout-d5491e7e7-22276,worker-c,Burstable,default,loses;moves;nominal,app,app,"
        "1000,,1,0,"
        "v1,1024,1024,0.249118468,0.249118468,1.170662176,1.170662176,0.909413854,0.909413854,,,"
        "v2,100,100,0.171779218,0.171779218,0.420859084,0.420859084,0.854700855,0.854700855,,,"
        "-0.640494848,-0.640494848,-0.060162927,-0.060162927,-0.61748141,-0.61748141"
    )


@pytest.mark.parametrize("audit", [RECORDED, BLIND], ids=["known", "open"])
def test_every_container_has_a_row_with_its_numbers(audit: Audit) -> None:
    expected = [
        (workload, pod, container)
        for workload in audit.workloads
        for pod in workload.pods
        for container in pod.containers
    ]
    rows = parsed(rendered("csv", audit))
    assert len(rows) == len(expected) > 30
    for row, (workload, pod_, container_) in zip(rows, expected, strict=True):
        assert (row["namespace"], row["workload"], row["pod"], row["container"]) == (
            workload.namespace,
            workload.name,
            pod_.name,
            container_.name,
        )
        assert int(row["cases"]) == len(container_.cases)
        shares = [case.after.share for case in container_.cases if case.after.share is not None]
        assert [row["after_share_least"], row["after_share_greatest"]] == [str(min(shares)), str(max(shares))]
        quotas = {case.before.quota_us for case in container_.cases}
        assert {row["before_quota_us_least"], row["before_quota_us_greatest"]} == {
            "" if quota is None else str(quota) for quota in quotas
        }


def test_shares_and_weights_are_not_mixed_in_one_range() -> None:
    (row,) = parsed(rendered("csv", audited(cluster(node(), pod("p", container("c", "1"))))))
    assert (row["cases"], row["before_version"], row["after_version"]) == ("4", "v1;v2", "v2")
    assert (row["before_value_least"], row["before_value_greatest"]) == ("", "")
    assert (row["after_value_least"], row["after_value_greatest"]) == ("100", "100")
    assert (row["change_against_system_least"], row["change_against_system_greatest"]) == ("-0.6075", "0.0")


def test_a_measure_that_does_not_apply_is_empty() -> None:
    init = pod("p", container("c", "1"), initContainers=[container("i", "1")])
    init["status"]["initContainerStatuses"] = [{"name": "i", "state": {"running": {}}}]
    rows = {row["container"]: row for row in parsed(rendered("csv", audited(cluster(node(), init))))}
    assert rows["i"]["role"] == "init"
    assert rows["i"]["before_share_least"] == rows["i"]["change_in_pod_least"] == ""
    assert rows["i"]["after_value_least"] == "100"
    assert rows["c"]["limit_milli"] == rows["c"]["before_quota_us_least"] == ""


def test_pods_that_could_not_be_predicted_are_not_lost() -> None:
    result = audited(cluster(node(), pod("p", container("c", "1"), on="gone"), pod("q", container("c", "1"))))
    rows = {row["workload"]: row for row in parsed(rendered("csv", result))}
    assert rows["p"] == {
        **dict.fromkeys(csv.COLUMNS, ""),
        "namespace": "default",
        "workload_kind": "Pod",
        "workload": "p",
        "effects": "unknown",
        "confidence": "unknown",
    }
    assert rows["q"]["container"] == "c"


@given(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40),
        st.builds(str.__add__, st.sampled_from([*FORMULAS, "'", "''", '"', ","]), st.text("=,\"'\r\n;a1", max_size=20)),
    )
)
@example("=cmd|' /C calc'!A0")
@example("＝1+1")
@example('a",\r\n"b')
@settings(max_examples=150, deadline=None)
def test_hostile_names_come_back_and_nothing_is_a_formula(name: str) -> None:
    audit = renamed(RECORDED, lambda old: f"{name}{old}")
    rows = list(reader.reader(io.StringIO(rendered("csv", audit), newline="")))
    header, *rest = rows
    assert tuple(header) == csv.COLUMNS
    containers = [(w, p, c) for w in audit.workloads for p in w.pods for c in p.containers]
    assert len(rest) == len(containers)
    for row, (workload, pod_, container_) in zip(rest, containers, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert original(cells["workload"]) == visible(workload.name)
        assert original(cells["namespace"]) == visible(workload.namespace)
        assert original(cells["workload_kind"]) == visible(workload.kind)
        assert original(cells["pod"]) == visible(pod_.name)
        assert original(cells["container"]) == visible(container_.name)
        for cell in row:
            if cell.lstrip().startswith(tuple(FORMULAS)):
                assert float(cell) < 0


def test_a_piece_a_workload() -> None:
    pieces = csv.pieces(RECORDED)
    assert [*pieces.head] == [",".join(csv.COLUMNS) + "\r\n"]
    assert pieces.each
    part = pieces.each(RECORDED.workloads[0], True)
    (first, *_) = RECORDED.workloads[0].pods
    row, more = part.pod(of_audit(first), True).split("\r\n", 1)
    assert row.startswith(f"shop,Deployment,checkout,loses;moves;nominal,,stated,{first.name},{first.node},")
    assert row.count(",") == len(csv.COLUMNS) - 1
    assert more.count("\r\n") == len(first.containers) - 1
    assert (part.before, part.after, [*pieces.tail]) == ("", "", [])


def test_on_the_command_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run([*RECORDED_FLAGS, "-o", "csv"]) == 0
    assert capsysbinary.readouterr().out == rendered("csv", RECORDED).encode()


@pytest.mark.parametrize("sign", [*"=+-@':", "＝", "＋", "－", "＠", "  =", "\u3000:"])
def test_no_cell_of_a_spreadsheet_is_a_formula(sign: str) -> None:
    text = rendered("csv", hand_made(f"{sign}1+1"))
    (row, *_) = reader.DictReader(io.StringIO(text, newline=""))
    for column in ("namespace", "pod", "node", "handler", "container"):
        assert row[column] == f"'{sign}1+1", column
    # Only its first sign makes a formula: a name that merely has one is as it was.
    (row, *_) = reader.DictReader(io.StringIO(rendered("csv", hand_made(f"a{sign}")), newline=""))
    assert row["pod"] == f"a{sign}"


@pytest.mark.parametrize("sign", ["\t", "\r", "\n", "\x1b[31m", "\x9b", "\x7f", "\u202e", "\U000e0041"])
def test_no_cell_holds_a_character_that_acts(sign: str) -> None:
    (row, *_) = reader.DictReader(io.StringIO(rendered("csv", hand_made(f"{sign}=1")), newline=""))
    for column in ("namespace", "pod", "node", "handler", "container"):
        assert row[column] == f"{visible(sign)}=1", column
    assert row["pod"].isprintable()


def test_every_row_has_every_column() -> None:
    half = audited(cluster(node(), pod("none"), pod("p", container("c", "1"), on="gone"), pod("q", container("c"))))
    rows = list(reader.reader(io.StringIO(rendered("csv", half), newline="")))
    assert {len(row) for row in rows} == {len(csv.COLUMNS)}
    assert "null" not in rendered("csv", half)


def test_each_container_has_its_own_numbers_and_its_pods() -> None:
    two = audited(
        cluster(node(), pod("p", container("a", "1"), container("b", "3")), pod("q", container("c", "1"))),
        "- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.1.5}}",
    )
    records = {each["container"]: each for each in map(json.loads, rendered("ndjson", two).splitlines())}
    found = {
        container_.name: (pod_.cases[0], container_.cases[0])
        for workload in two.workloads
        for pod_ in workload.pods
        for container_ in pod_.containers
    }
    assert set(records) == set(found) == {"a", "b", "c"}
    for name, (of_pod, own) in found.items():
        record = records[name]
        for time, moment in (("before", own.before), ("after", own.after)):
            for end in ("least", "greatest"):
                assert record[f"{time}_value_{end}"] == moment.value
                assert record[f"{time}_share_{end}"] == moment.share
                assert record[f"{time}_against_system_{end}"] == moment.against_system
                assert record[f"{time}_in_pod_{end}"] == moment.in_pod
        assert of_pod.before.against_system is not None
        assert of_pod.after.against_system is not None
        change = of_pod.after.against_system / of_pod.before.against_system - 1
        assert record["pod_change_against_system_least"] == pytest.approx(change, abs=1e-6)
    assert records["a"]["before_share_least"] < records["b"]["before_share_least"]
