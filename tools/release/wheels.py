"""Wheels of dependencies: downloaded by pip with their hashes checked, and what is in them."""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile


class DownloadError(Exception):
    """pip could not get a wheel; the message is pip's own last line."""


def download(wanted: Sequence[str], folder: Path, python: str | None, tags: Sequence[str]) -> None:
    """Have pip download wheels for a CPython such as 3.11 (None: for any Python). Raises DownloadError."""
    abi = ["--implementation", "py", "--abi", "none"]
    if python:
        cp = "cp" + python.replace(".", "")
        abi = ["--implementation", "cp", "--python-version", python, "--abi", cp, "--abi", "abi3", "--abi", "none"]
    platforms = [word for tag in tags for word in ("--platform", tag)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", "--dest", str(folder), *abi, *platforms, *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - pip, with our own words
    if done.returncode:
        raise DownloadError((done.stderr.strip().splitlines() or ["pip failed"])[-1])


def try_download(wanted: Sequence[str], folder: Path, python: str | None, tags: Sequence[str]) -> bool:
    """Whether there are such wheels; they are in the folder then."""
    try:
        download(wanted, folder, python, tags)
    except DownloadError:
        return False
    return True


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
