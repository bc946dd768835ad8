"""The life of a scheduled job: runs with a rotated token, a failed run, an incomplete one; codes, metrics and reports."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import incluster_config
from prometheus_client.parser import text_string_to_metric_families

from kubectl_cgaudit.cli.main import run
from tests.simulator import Cluster, Fault, Simulator, Size, Store

CLUSTER = Cluster(Size(6, 90), seed=11)
pytestmark = pytest.mark.skipif(
    not shutil.which("openssl"), reason="the simulator's certificate needs the openssl command"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(CLUSTER, tmp_path_factory.mktemp("store"))


class Job:
    """What the CronJob runs, with the service account's files where the cluster mounts them."""

    def __init__(self, simulator: Simulator, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert simulator.ca
        self.folder = folder
        self.monkeypatch = monkeypatch
        simulator.credentials.keep_in(folder / "token")
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("HOME", str(folder / "home"))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(simulator.port))
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(folder / "token"))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(simulator.ca))

    def run(self, moment: int, *flags: str) -> int:
        self.monkeypatch.setenv("SOURCE_DATE_EPOCH", str(moment))
        outputs = [f"{name}={self.folder / name}" for name in ("json", "html", "prometheus")]
        return run([*(word for each in ("table", *outputs) for word in ("-o", each)), *flags])

    @property
    def audit(self) -> dict:  # type: ignore[type-arg]
        return json.loads((self.folder / "json").read_text())  # type: ignore[no-any-return]

    def metric(self, name: str) -> float:
        families = text_string_to_metric_families((self.folder / "prometheus").read_text())
        (value,) = [each.value for family in families for each in family.samples if each.name == f"cgaudit_{name}"]
        return value


def timeless(audit: dict[str, Any]) -> dict[str, Any]:
    """An audit and its containers without when it was made."""
    return {**audit, "time": None, "containers": [{**each, "time": None} for each in audit["containers"]]}


def test_the_life_of_a_scheduled_job(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Simulator(CLUSTER, token="mounted", tls=True, store=store) as simulator:
        job = Job(simulator, tmp_path, monkeypatch)

        assert job.run(1_700_000_000) == 0
        first = job.audit
        assert first["time"] == "2023-11-14T22:13:20Z"
        assert first["coverage"]["complete"] is True
        assert first["coverage"]["source"] == f"cluster 127.0.0.1:{simulator.port} (in-cluster service account)"
        assert (job.metric("coverage_complete"), job.metric("last_run_timestamp_seconds")) == (1, 1_700_000_000)
        assert job.metric("pods_read") == first["coverage"]["podsRead"] == 90
        assert (tmp_path / "html").read_text().endswith("</html>\n")

        # The kubelet puts a new token in its place between two runs, and once while one reads.
        simulator.credentials.rotate()
        assert job.run(1_700_086_400) == 0
        assert timeless(job.audit) == timeless(first)
        simulator.faults.add(Fault("expire", "pods", page="first"))
        assert job.run(1_700_172_800) == 0
        assert timeless(job.audit) == timeless(first)
        assert job.metric("last_run_timestamp_seconds") == 1_700_172_800

        # A run that can do nothing leaves the last reports, and the time in the metrics shows it.
        kept = {name: (tmp_path / name).read_bytes() for name in ("json", "html", "prometheus")}
        simulator.faults.clear()
        simulator.faults.add(Fault("forbidden", "nodes", page="first", times=0))
        capsys.readouterr()
        assert job.run(1_700_259_200) == 1
        assert capsys.readouterr().err.startswith("error: the nodes may not be listed (403")
        assert {name: (tmp_path / name).read_bytes() for name in kept} == kept
        assert job.metric("last_run_timestamp_seconds") == 1_700_172_800

        # A run that misses a namespace says so everywhere.
        simulator.faults.clear()
        simulator.faults.add(Fault("forbidden", "pods", page="any", times=0, namespaces=("",)))
        code = job.run(1_700_345_600)
        assert code == 3
        assert job.audit["coverage"]["complete"] is False
        assert (job.metric("coverage_complete"), job.metric("coverage_gaps")) == (0, len(job.audit["coverage"]["gaps"]))
        assert "INCOMPLETE" in (tmp_path / "html").read_text()

        # And a baseline makes the next one speak of what is new.
        simulator.faults.clear()
        (tmp_path / "last.json").write_bytes(kept["json"])
        assert job.run(1_700_432_000, "--baseline", str(tmp_path / "last.json"), "--fail-on", "low") == 0
        assert job.audit["findings"] == []
        assert len(job.audit["known"]) == len(first["findings"])
