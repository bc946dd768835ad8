"""The Helm chart: rendered, it is what `manifests` prints, and the image is what both run."""

import importlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_cgaudit import __version__
from kubectl_cgaudit.cli.policy import LEVELS
from kubectl_cgaudit.manifests.settings import Destination, Settings
from kubectl_cgaudit.report.formats import FORMATS
from tests import helm_subset
from tests.manifests_support import EVERY, objects, pod_spec

ROOT = Path(__file__).parent.parent


CHART = ROOT / "charts" / "kubectl-cgaudit"


def values(settings: Settings) -> dict[str, Any]:
    """The chart's values for settings."""
    return {
        "createNamespace": settings.creates_namespace,
        "schedule": settings.schedule,
        "to": settings.to or "",
        "failOn": settings.fail_on or "",
        "kubelet": "direct" if settings.kubelet else "",
        "owners": settings.owners,
        "statesConfigMap": settings.states or "",
        "policyConfigMap": settings.policy or "",
        "sink": settings.sink,
        "networkPolicy": {
            "enabled": settings.network_policy,
            "apiPorts": [443, 6443, *settings.api_ports],
            "egress": [
                {
                    "to": [{"ipBlock": {"cidr": found.cidr}}],
                    "ports": [{"protocol": found.protocol, "port": found.port}],
                }
                for found in map(Destination.parse, settings.egress)
            ],
        },
    }


def by_kind(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    kinds = {each["kind"]: each for each in found}
    assert len(kinds) == len(found)
    return kinds


def real_helm(namespace: str, given: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """What Helm itself renders: the command, or the Python binding helm-python-sdk."""
    if shutil.which("helm"):
        (folder / "values.json").write_text(json.dumps(given))
        command = ["helm", "template", "cgaudit", str(CHART), "-n", namespace, "-f", str(folder / "values.json")]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [each for each in yaml.safe_load_all(text) if each]
    try:
        helm = importlib.import_module("helm_python")
    except ImportError:
        pytest.skip("neither the helm command nor helm-python-sdk is there: the chart is not rendered by Helm itself")
    with helm.Chart.load(str(CHART)) as chart:
        texts = chart.render(given, name="cgaudit", namespace=namespace)
    return [each for text in texts.values() for each in yaml.safe_load_all(text) if each]


def test_the_chart_with_default_values_is_what_manifests_prints() -> None:
    expected = objects(Settings(creates_namespace=False, formats=FORMATS))
    assert by_kind(helm_subset.render(CHART, "cgaudit", {})) == expected
    with_namespace = helm_subset.render(CHART, "cgaudit", {"createNamespace": True})
    assert by_kind(with_namespace) == objects(Settings(formats=FORMATS))


def test_the_chart_follows_every_choice() -> None:
    for settings in EVERY:
        assert by_kind(helm_subset.render(CHART, "cgaudit", values(settings))) == objects(settings)


def test_helm_itself_renders_the_same(tmp_path: Path) -> None:
    assert by_kind(real_helm("cgaudit", {}, tmp_path)) == objects(Settings(creates_namespace=False, formats=FORMATS))
    for settings in EVERY:
        assert by_kind(real_helm("cgaudit", values(settings), tmp_path)) == objects(settings)
    more = {
        "tolerations": [{"operator": "Exists"}],
        "imagePullSecrets": [{"name": "pull"}],
        "nodeSelector": {"pool": "tools"},
        "image": "registry.example/cgaudit@sha256:ab",
        "storage": {"size": "5Gi", "className": "slow"},
        "resources": {"limits": {"memory": "2Gi"}},
        "reports": ["html"],
    }
    assert by_kind(real_helm("audits", more, tmp_path)) == by_kind(helm_subset.render(CHART, "audits", more))


def test_what_only_the_chart_can_set() -> None:
    more = {"tolerations": [{"operator": "Exists"}], "imagePullSecrets": [{"name": "pull"}]}
    maps = {"storage": {"size": "5Gi", "className": "slow"}, "nodeSelector": {"pool": "tools"}}
    found = by_kind(helm_subset.render(CHART, "cgaudit", more | maps | {"reports": ["html"]}))
    expected = objects(Settings(creates_namespace=False, formats=("html",)))
    pod = pod_spec(expected["CronJob"])
    pod |= {"tolerations": [{"operator": "Exists"}], "imagePullSecrets": [{"name": "pull"}]}
    pod |= {"nodeSelector": {"kubernetes.io/os": "linux", "pool": "tools"}}
    claim = expected["PersistentVolumeClaim"]["spec"]
    claim |= {"resources": {"requests": {"storage": "5Gi"}}, "storageClassName": "slow"}
    assert found == expected


def test_the_chart_is_of_this_version_and_its_schema_knows_every_value() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (__version__, __version__)
    jsonschema = importlib.import_module("jsonschema")
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.validate(defaults, schema)
    assert set(schema["properties"]) - {"global"} == set(defaults)
    assert schema["properties"]["failOn"]["enum"] == ["", *LEVELS]
    for wrong in (
        {"kubelet": "proxy"},
        {"sink": "configmap"},
        {"shedule": "x"},
        {"reports": ["pdf"]},
        {"failOn": "High"},
        # A rule without ports, or without anything, allows everything.
        {"networkPolicy": {"apiPorts": []}},
        {"networkPolicy": {"egress": [{}]}},
        {"networkPolicy": {"apiPorts": [65536]}},
        {"networkPolicy": {"egres": []}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(defaults | wrong, schema)


def test_the_image_runs_as_the_user_the_pod_asks_for() -> None:
    users = [line for line in (ROOT / "Containerfile").read_text().splitlines() if line.startswith("USER ")]
    assert users == ["USER 65532:65532"]


def test_the_lock_file_has_every_dependency_with_its_hash() -> None:
    wanted = re.search(r"^dependencies = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    assert wanted
    names = {name.lower() for name in re.findall(r'"([A-Za-z0-9_-]+)', wanted[1])}
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text())
    locked = {entry.partition("==")[0]: entry for entry in entries if not entry.startswith("#")}
    assert "kubernetes" in names
    assert names <= set(locked)
    assert [name for name, entry in locked.items() if "--hash=sha256:" not in entry] == []
