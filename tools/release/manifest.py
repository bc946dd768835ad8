"""The krew manifest with its checksums, and SHA256SUMS."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from tools.release.lock import ROOT

TEMPLATE = ROOT / "plugin.yaml"
_ENTRY = re.compile(r'uri: \S*/(?P<file>[^/\s]+)\n\s+sha256: "(?P<zeros>0{64})"')


def version() -> str:
    """Of the package, without importing it."""
    found = re.search(r'__version__ = "([^"]+)"', (ROOT / "kubectl_cgaudit" / "__init__.py").read_text())
    assert found
    return found[1]


def name(platform: str, extension: str) -> str:
    """An archive's file name."""
    return f"kubectl-cgaudit-v{version()}-{platform}.{extension}"


def fill(template: str, archives: Mapping[str, bytes]) -> str:
    """The manifest krew takes: the template's zeros replaced, its opening comment left out. An archive not built keeps them."""

    def checksum(found: re.Match[str]) -> str:
        data = archives.get(found["file"])
        return found[0].replace(found["zeros"], hashlib.sha256(data).hexdigest()) if data else found[0]

    body = re.sub(r"\A(#[^\n]*\n)+", "", template)
    return _ENTRY.sub(checksum, body)


def checksums(folder: Path) -> str:
    """A line for each file, as sha256sum -c reads them."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
