"""Live: an audit of the simulated cluster against a raw paging loop and a bare decode loop."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from tools.bench.cost import PYTHON, ROOT, Summary, environment, in_turn, run

AUDIT = [PYTHON, "-c", "import sys; from kubectl_cgaudit.__main__ import main; sys.exit(main())"]
"""What the installed command does."""
_BASELINE = [PYTHON, "-m", "tools.bench.baseline"]
_PODS_A_NODE = 30


class Live(Struct, frozen=True):
    """One cluster at one pace (seconds a page)."""

    pods: int
    nodes: int
    pace: float
    audit: Summary
    raw: Summary
    decode: Summary

    @property
    def wall_ratio(self) -> tuple[float, float]:
        """To raw paging: of the minima, of the medians."""
        return self.audit.wall_min / self.raw.wall_min, self.audit.wall_median / self.raw.wall_median

    @property
    def cpu_ratio(self) -> tuple[float, float]:
        """To the bare decode loop: of the minima, of the medians."""
        return self.audit.cpu_min / self.decode.cpu_min, self.audit.cpu_median / self.decode.cpu_median


def nodes_for(pods: int) -> int:
    """How many nodes a cluster of so many pods has here."""
    return max(pods // _PODS_A_NODE, 3)


def outputs(formats: Sequence[str], folder: Path) -> list[str]:
    """The flags that write each format to a file."""
    return [word for name in formats for word in ("-o", f"{name}={folder / name}")]


def measure(pods: int, pace: float, formats: Sequence[str], repeats: int, folder: Path) -> Live:
    """Measure one size at one pace. The server is a process of its own, so that its CPU is not counted."""
    config = folder / "kubeconfig"
    with _serve(pods, pace, config) as url:
        audit = [*AUDIT, "--kubeconfig", str(config), *outputs(formats, folder)]
        costs = in_turn(
            {"raw": [*_BASELINE, "raw", url], "decode": [*_BASELINE, "decode", url], "audit": audit}, repeats
        )
    return Live(pods, nodes_for(pods), pace, **costs)


def warm(pods: int, folder: Path) -> None:
    """Build the cluster where it is not kept yet, and have its pages and the code in the system's cache."""
    config = folder / "kubeconfig"
    with _serve(pods, 0, config) as url:
        run([*_BASELINE, "raw", url])


@contextmanager
def _serve(pods: int, pace: float, config: Path) -> Iterator[str]:
    size = ["--nodes", str(nodes_for(pods)), "--pods", str(pods)]
    command = [PYTHON, "-m", "tests.simulator", *size, "--pace", str(pace), "--kubeconfig", str(config)]
    with subprocess.Popen(  # noqa: S603 - the command is the simulator
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        try:
            url = server.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"{command} did not start")
            yield url
        finally:
            server.terminate()
