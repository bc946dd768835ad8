"""The history: a line of JSON for each run, appended, with nothing that names a machine or a path."""

import platform
import subprocess
from pathlib import Path

import msgspec
from msgspec import Struct

from tools.bench.cost import ROOT
from tools.bench.live import Live
from tools.bench.metrics import Metrics
from tools.bench.saved import Saved
from tools.bench.startup import Startup


class Run(Struct, frozen=True):
    """One run of the benchmarks."""

    commit: str
    """The commit that was measured, with `+` when tracked files differed from it."""
    python: str
    platform: str
    cores: int
    load: float
    """The machine's load average over a minute before the run began: what else it did."""
    repeats: int
    formats: list[str]
    startup: list[Startup]
    live: list[Live]
    saved: list[Saved]
    metrics: list[Metrics] = []
    """None in runs before it was measured."""


def commit() -> str:
    """The commit of this checkout; `unknown` outside one."""

    def git(*words: str) -> str:
        command = ["git", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> tuple[str, str]:
    """Python's version, and the kind of system."""
    return platform.python_version(), f"{platform.system()} {platform.machine()}"


def read(path: Path) -> list[Run]:
    """The runs so far, oldest first."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Run) for line in path.read_bytes().splitlines() if line.strip()]


def append(path: Path, run: Run) -> None:
    """Add a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as out:
        out.write(msgspec.json.encode(run) + b"\n")
