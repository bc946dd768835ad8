"""Wheels: installed or downloaded by pip with their hashes checked, and what is in them."""

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile


class DownloadError(Exception):
    """pip could not get a wheel, or got one with another hash; the message is pip's own."""


def environment(folder: Path, lock: Path) -> Path:
    """Make a virtual environment with what a lock file names by hash and nothing else; return its Python.

    Raises DownloadError. pip itself is the one that comes with Python.
    """
    venv.EnvBuilder(with_pip=True, symlinks=os.name != "nt").create(folder)
    python = folder.joinpath(*(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
    # Only wheels: what a source distribution needs to be built would be installed without hashes.
    _pip(python, ["install", "--no-deps", "--require-hashes", "--only-binary=:all:", "-r", str(lock)])
    return python


def download(wanted: Sequence[str], folder: Path, python: str | None, tags: Sequence[str]) -> None:
    """Have pip download wheels for a CPython such as 3.11 (None: for any Python). Raises DownloadError."""
    abi = ["--implementation", "py", "--abi", "none"]
    if python:
        cp = "cp" + python.replace(".", "")
        abi = ["--implementation", "cp", "--python-version", python, "--abi", cp, "--abi", "abi3", "--abi", "none"]
    platforms = [word for tag in tags for word in ("--platform", tag)]
    _pip(Path(sys.executable), ["download", "--only-binary=:all:", "--dest", str(folder), *abi, *platforms, *wanted])


def try_download(wanted: Sequence[str], folder: Path, python: str | None, tags: Sequence[str]) -> bool:
    """Whether there are such wheels; they are in the folder then."""
    try:
        download(wanted, folder, python, tags)
    except DownloadError:
        return False
    return True


def _pip(python: Path, words: Sequence[str]) -> None:
    command = [str(python), "-I", "-m", "pip", *words, "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - pip, with our own words
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pip failed"]
        raise DownloadError(next((line for line in reversed(lines) if line.startswith("ERROR:")), lines[-1]))


def project(wheel: Path) -> tuple[str, str]:
    """Its name, as pip writes it in a lock file, and its version."""
    name, version, *_ = wheel.name.split("-")
    return re.sub(r"[-_.]+", "-", name).lower(), version


def contents(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Every file in it."""
    with ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith("/"):
                yield name, archive.read(name)
