"""`--redact`: names of a cluster are in no report, and nothing else changes."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from kubectl_cgaudit.audit.model import Audit
from kubectl_cgaudit.audit.saved import load
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.report.redact import Pseudonyms
from tests.support import RECORDED, RECORDED_FLAGS, V1, cluster, container, listed, node, pod

BLIND = RECORDED_FLAGS[: RECORDED_FLAGS.index("--states")]
FORMATS = ("table", "wide", "json", "yaml", "csv", "markdown", "html", "sarif", "junit", "prometheus", "ndjson")
KINDS = {"Node", "Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet"}
OUR_WORDS = {
    "app",
    "data",
    "platform",
    "shop",
    "edge",
    "batch",
    "default",
    "kube-system",
    "runner",
    "primary",
    "sh",
    "report",
}
"""Names of the recorded cluster that are words of the reports, of their pages or of a system: they are looked for as
`namespace/`."""


def names() -> set[str]:
    """Every name of the recorded cluster."""
    found = set()
    for source in RECORDED:
        for each in json.loads(Path(source).read_text())["items"]:
            if each["kind"] not in KINDS:
                continue
            metadata = each["metadata"]
            owners = (owner["name"] for owner in metadata.get("ownerReferences", ()))
            containers = (one["name"] for one in each["spec"].get("containers", ()))
            found |= {metadata["name"], metadata.get("namespace", ""), *owners, *containers}
    return found - {""}


def written(folder: Path, *flags: str) -> dict[str, str]:
    """Every report that is text."""
    outputs = [word for name in FORMATS for word in ("-o", f"{name}={folder / name}")]
    assert run([*flags, *outputs]) == 0
    return {name: (folder / name).read_text() for name in FORMATS}


@pytest.mark.parametrize("flags", [RECORDED_FLAGS, BLIND, [*BLIND, "-n", "shop", "--to", "like=worker-a"]])
def test_no_name_is_in_a_report(flags: list[str], tmp_path: Path) -> None:
    every = names()
    assert len(every) > 40
    hidden = "|".join(re.escape(name) for name in sorted(every - OUR_WORDS, key=len, reverse=True))
    spaces = "|".join(sorted(OUR_WORDS - {"default", "kube-system"}))
    alone = re.compile(rf"(?<![\w.-])(?:(?:{hidden})(?![\w-])|(?:{spaces})/)")
    for name, text in written(tmp_path, *flags, "--redact").items():
        if name == "html":
            text = text.partition("</style>")[2].partition("<script")[0]
        assert not (found := alone.search(text)), f"{name}: {text[max(0, found.start() - 60) : found.end() + 60]}"


def test_no_name_is_in_a_saved_audit_or_in_parquet(tmp_path: Path) -> None:
    assert run([*RECORDED_FLAGS, "--redact", "-o", f"audit={tmp_path / 'a'}", "-o", f"parquet={tmp_path / 'p'}"]) == 0
    table = pl.read_parquet(tmp_path / "p")
    saved = load((tmp_path / "a").read_bytes(), "a")
    assert pl.concat(saved.containers.frames()).equals(table)
    for column in ("namespace", "workload", "pod", "node", "container"):
        assert not set(table[column]) & names() - {"kube-system", "default"}, column
    assert "shop/checkout" not in msgspec.json.encode(saved.audit).decode()


def test_everything_else_stays(tmp_path: Path) -> None:
    plain, hidden = tmp_path / "plain", tmp_path / "hidden"
    assert run([*RECORDED_FLAGS, "-o", f"json={plain}"]) == 0
    assert run([*RECORDED_FLAGS, "--redact", "-o", f"json={hidden}"]) == 0
    was, now = (msgspec.json.decode(path.read_bytes(), type=Audit) for path in (plain, hidden))
    assert was.verdict.findings == now.verdict.findings
    assert [(each.rule, each.severity, each.measures, each.at_least) for each in was.findings] == [
        (each.rule, each.severity, each.measures, each.at_least) for each in now.findings
    ]
    assert [(each.run, each.effect and each.effect.cleared) for each in was.actions] == [
        (each.run, each.effect and each.effect.cleared) for each in now.actions
    ]
    # What an action clears can still be found.
    ids = {each.id for each in now.findings}
    assert len(ids) == len(now.findings)
    assert all(set(each.clears) <= ids for each in now.actions)
    assert [(each.subject.namespace == "kube-system") for each in was.findings] == [
        (each.subject.namespace == "kube-system") for each in now.findings
    ]


def subjects(flags: list[str], path: Path) -> set[str]:
    """What the findings of an audit are about."""
    assert run([*flags, "--redact", "-o", f"json={path}"]) == 0
    return {each.subject.key for each in msgspec.json.decode(path.read_bytes(), type=Audit).findings}


def test_a_name_has_one_pseudonym_in_all_audits_with_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    all_of_it = subjects(RECORDED_FLAGS, tmp_path / "a")
    assert subjects([*RECORDED_FLAGS, "-n", "shop"], tmp_path / "b") < all_of_it
    assert "ns-adbc0a/Deployment/app-6d65b0" in all_of_it
    monkeypatch.setenv("CGAUDIT_REDACT_KEY", "a secret")
    assert not subjects(RECORDED_FLAGS, tmp_path / "c") & {each for each in all_of_it if "ns-" in each}


def placed(made: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The pod in another namespace."""
    made["metadata"]["namespace"] = namespace
    return made


def test_names_that_are_words_of_the_audit_break_nothing(tmp_path: Path) -> None:
    one = placed(pod("pods", container("cgroup", "1"), container("requests", "50m"), on="system.slice"), "high")
    two = placed(pod("v2", container("container", "100m"), on="system.slice"), "loses")
    (tmp_path / "list.json").write_text(listed(node("system.slice"), one, two))
    (tmp_path / "states.yaml").write_text(V1)
    flags = ["-f", str(tmp_path / "list.json"), "--states", str(tmp_path / "states.yaml")]
    outputs = ["-o", f"json={tmp_path / 'a.json'}", "-o", f"table={tmp_path / 'table'}"]
    assert run([*flags, "--redact", *outputs]) == 0
    audit = load((tmp_path / "a.json").read_bytes(), "a").audit
    assert [each.name for each in audit.nodes] == ["node-" + audit.nodes[0].name[-6:]]
    assert {each.namespace[:3] for each in audit.workloads} == {"ns-"}
    assert {each.name[:4] for each in audit.workloads} == {"app-"}
    assert audit.nodes[0].known["cgroup"].value == "v1"
    assert "lose CPU to system services" in (tmp_path / "table").read_text().replace("\n         ", " ")


def test_a_bundle_leaves_the_snapshot_out(tmp_path: Path) -> None:
    assert run([*RECORDED_FLAGS, "--redact", "-o", f"bundle={tmp_path / 'b.zip'}"]) == 0
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert archive.namelist() == ["audit.html", "audit.md", "SHA256SUMS"]
        assert b"worker-c" not in archive.read("audit.html")


def test_labels_and_patterns_of_names_are_hidden_too(tmp_path: Path) -> None:
    label = {"cloud.google.com/gke-nodepool": "secret-pool"}
    nodes = [node(f"secret-{number}", labels=label) for number in (1, 2)]
    other = node("n3")
    running = pod("a", container("c", "1"), container("d", "10m"), on="secret-1")
    (tmp_path / "list.json").write_text(listed(*nodes, other, running))
    assert run(["-f", str(tmp_path / "list.json"), "--redact", "-o", f"json={tmp_path / 'a'}"]) == 0
    text = (tmp_path / "a").read_text()
    assert "secret" not in text
    assert "match: {name: NODE}" in text


def test_addresses_are_hidden() -> None:
    names = Pseudonyms(cluster(node("worker")), "")
    said = "worker: dial tcp 10.0.0.7:10250: GET https://api.corp.example:6443/api/v1/pods?limit=5, then 4 retries"
    assert names.text(said) == f"{names.name('worker')}: dial tcp (address): GET (address), then 4 retries"
