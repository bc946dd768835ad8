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
    assert len(spec["platforms"]) == 6
    for platform in spec["platforms"]:
        assert set(platform) == {"selector", "uri", "sha256", "bin"}
        assert platform["uri"].startswith(f"{spec['homepage']}/releases/download/{spec['version']}/")
        # A template: the release build fills them in.
        assert platform["sha256"] == "0" * 64
        assert set(platform["selector"]["matchLabels"]) == {"os", "arch"}


def test_linux_macos_and_windows_are_covered_on_both_architectures_once() -> None:
    covered = [tuple(platform["selector"]["matchLabels"].values()) for platform in MANIFEST["spec"]["platforms"]]
    assert covered == [(system, machine) for system in ("linux", "darwin", "windows") for machine in ("amd64", "arm64")]


def test_only_an_exe_is_linked_on_windows() -> None:
    platforms = MANIFEST["spec"]["platforms"]
    assert [(each["bin"], re.sub(r".*[^.a-z]", "", each["uri"])) for each in platforms] == [
        *[("kubectl-cgaudit", ".tar.gz")] * 4,
        *[("kubectl-cgaudit.exe", ".zip")] * 2,
    ]
