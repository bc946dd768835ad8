"""The .exe for Windows, which krew needs: it links no .bat, .cmd or .ps1 (kubernetes-sigs/krew#131, #821).

It is made as pip makes the ones for console scripts: distlib's launcher, a shebang line, and a zip that Python runs.
"""

import io
import re
from pathlib import Path
from zipfile import ZipFile, ZipInfo

from tools.release import wheels
from tools.release.lock import ROOT

_STUBS = {"amd64": "distlib/t64.exe", "arm64": "distlib/t64-arm.exe"}
# The launcher looks python.exe up on the PATH and hands the other words on to it.
_SHEBANG = b"#!/usr/bin/env python -I -S\n"


def executable(wheel: Path, arch: str) -> bytes:
    """kubectl-cgaudit.exe for amd64 or arm64."""
    stub = dict(wheels.contents(wheel))[_STUBS[arch]]
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        archive.writestr(ZipInfo("__main__.py", (1980, 1, 1, 0, 0, 0)), main_module())
    return stub + _SHEBANG + buffer.getvalue()


def main_module() -> str:
    """The launcher without the lines for the shell."""
    launcher = (ROOT / "packaging" / "kubectl-cgaudit").read_text()
    return re.sub(r"\A.*?^'''$\n", "", launcher, flags=re.DOTALL | re.MULTILINE)
