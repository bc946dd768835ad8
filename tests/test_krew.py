"""plugin.yaml against krew's own rules (internal/index/validation/validate.go)."""

import re
from typing import Any

import yaml

from kubectl_cgaudit import __version__
from tests.support import GOLDEN

MANIFEST: dict[str, Any] = yaml.safe_load((GOLDEN.parent.parent / "plugin.yaml").read_text())
SEMVER = re.compile(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


def test_krew_takes_the_manifest() -> None:
    assert MANIFEST["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert MANIFEST["kind"] == "Plugin"
    assert MANIFEST["metadata"]["name"] == "cgaudit"
    spec = MANIFEST["spec"]
    assert SEMVER.fullmatch(spec["version"])
    assert spec["version"] == f"v{__version__}"
    assert "\n" not in spec["shortDescription"]
    assert 0 < len(spec["shortDescription"]) <= 60
    for platform in spec["platforms"]:
        assert platform["uri"].startswith("https://")
        assert re.fullmatch(r"[a-f0-9]{64}", platform["sha256"])
        assert platform["bin"]
        assert {each["key"] for each in platform["selector"]["matchExpressions"]} == {"os", "arch"}
        assert all(operation["from"] and operation["to"] for operation in platform["files"])
        assert "LICENSE" in [operation["from"] for operation in platform["files"]]


def test_linux_macos_and_windows_are_covered_on_both_architectures() -> None:
    covered = set()
    for platform in MANIFEST["spec"]["platforms"]:
        values = {each["key"]: each["values"] for each in platform["selector"]["matchExpressions"]}
        covered |= {(system, machine) for system in values["os"] for machine in values["arch"]}
    assert covered == {(system, machine) for system in ("linux", "darwin", "windows") for machine in ("amd64", "arm64")}
