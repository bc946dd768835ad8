"""The wheel and the source distribution for PyPI, packed anew so that they too depend on the commit alone."""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from zipfile import ZipFile

from tools.release.archive import pack
from tools.release.lock import ROOT

# Which setuptools builds it, since it writes its version into the wheel.
CONSTRAINTS = ROOT / "packaging" / "build.constraints"


def build(epoch: int) -> dict[str, bytes]:
    """Both by their file names, dated `epoch` (seconds since 1970). The wheel is built from the source distribution."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch), "PIP_CONSTRAINT": str(CONSTRAINTS)}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "build", "--outdir", folder, str(ROOT)]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, cwd=folder)  # noqa: S603
        return {
            each.name: pack(_files(each), "zip" if each.suffix == ".whl" else "tar.gz", epoch)
            for each in Path(folder).iterdir()
        }


def _files(made: Path) -> dict[str, bytes]:
    if made.suffix == ".whl":
        with ZipFile(made) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    with tarfile.open(made) as archive:
        found = {entry.name: archive.extractfile(entry) for entry in archive if entry.isfile()}
        return {name: data.read() for name, data in found.items() if data}
