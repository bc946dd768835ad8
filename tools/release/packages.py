"""The wheel and the source distribution for PyPI. They depend on the commit and on requirements-build.lock alone.

The environment that builds them is made for that and thrown away. setuptools is asked through PEP 517, as pip asks it.
"""

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from zipfile import ZipFile

from tools.release import wheels
from tools.release.archive import pack
from tools.release.lock import ROOT
from tools.release.tree import sources

LOCK = ROOT / "requirements-build.lock"
_HOOK = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


def build(epoch: int) -> dict[str, bytes]:
    """Both by their file names, dated `epoch` (seconds since 1970). The wheel is built from the source distribution.

    Raises DownloadError where setuptools cannot be had, or has another hash than the lock file's.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = wheels.environment(folder / "environment", LOCK)
        # A copy: what setuptools left behind in the project's folder, or somebody else did, would be taken up.
        for path in sources():
            copy = folder / "project" / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, copy)
        source = _made(python, folder / "project", "build_sdist", folder / "source")
        files = _files(source)
        for path, data in files.items():
            copy = folder / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
        wheel = _made(python, folder / source.name.removesuffix(".tar.gz"), "build_wheel", folder / "wheel")
        return {source.name: pack(files, "tar.gz", epoch), wheel.name: pack(_files(wheel), "zip", epoch)}


def _made(python: Path, project: Path, hook: str, into: Path) -> Path:
    """The one file that a hook of the build backend makes."""
    into.mkdir()
    command = [str(python), "-I", "-c", _HOOK, hook, str(into)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"{done.stderr}error: setuptools cannot build the package; see above")
    (made,) = into.iterdir()
    return made


def _files(made: Path) -> dict[str, bytes]:
    if made.suffix == ".whl":
        with ZipFile(made) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    with tarfile.open(made) as archive:
        found = {entry.name: archive.extractfile(entry) for entry in archive if entry.isfile()}
        return {name: data.read() for name, data in found.items() if data}
