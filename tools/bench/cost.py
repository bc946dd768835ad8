"""What a command costs: each runs as a fresh process, and the kernel counts."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec import Struct

from kubectl_cgaudit.cli.codes import INCOMPLETE

ROOT = Path(__file__).parents[2]
PYTHON = sys.executable
_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
_SHOWN = 2000


class Cost(Struct, frozen=True):
    """One run: seconds on the wall, seconds of CPU (user and system, all threads), most bytes resident at once."""

    wall: float
    cpu: float
    peak: int


class Summary(Struct, frozen=True):
    """Several runs of one command: minimum and median of the seconds, greatest peak in MiB."""

    wall_min: float
    wall_median: float
    cpu_min: float
    cpu_median: float
    peak_mib: float


def environment() -> dict[str, str]:
    """The caller's, without what would lead a client elsewhere than to the simulator."""
    led_astray = ("kubeconfig", "http_proxy", "https_proxy", "all_proxy", "pythonprofileimporttime")
    return {name: value for name, value in os.environ.items() if name.lower() not in led_astray}


def run(command: Sequence[str]) -> Cost:
    """Run a command in a process of its own. Raises RuntimeError when it could not do its work."""
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        with subprocess.Popen(  # noqa: S603 - the commands are this package's
            command, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        ) as process:
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
        # An incomplete audit is done: what kubectl prints of nodes and pods has no RuntimeClasses.
        if process.returncode not in (0, INCOMPLETE):
            said.seek(0)
            raise RuntimeError(f"{command} ended with {process.returncode}: {said.read(_SHOWN).decode()}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _MAXRSS_BYTES)


def in_turn(commands: dict[str, Sequence[str]], repeats: int, may_fail: Collection[str] = ()) -> dict[str, Summary]:
    """Run each command so many times, in turn: what disturbs one disturbs its neighbours.

    One that `may_fail` and does is left out, with the reason on standard error. Raises RuntimeError when another fails.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name in list(costs):
            try:
                costs[name].append(run(commands[name]))
            except RuntimeError as error:
                if name not in may_fail:
                    raise
                del costs[name]
                print(f"not compared: {error}", file=sys.stderr, flush=True)  # noqa: T201
    return {name: summary(each) for name, each in costs.items()}


def summary(costs: Sequence[Cost]) -> Summary:
    """Minimum, median and greatest."""
    walls, cpus = [each.wall for each in costs], [each.cpu for each in costs]
    return Summary(
        wall_min=round(min(walls), 4),
        wall_median=round(statistics.median(walls), 4),
        cpu_min=round(min(cpus), 4),
        cpu_median=round(statistics.median(cpus), 4),
        peak_mib=round(max(each.peak for each in costs) / (1 << 20), 1),
    )
