"""From a file: an audit of what `kubectl get nodes,pods -A -o json` prints, against `orjson.loads` on it."""

import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from tests.simulator.cluster import Cluster, Size
from tests.simulator.pages import Store
from tools.bench.cost import PYTHON, ROOT, Summary, environment, in_turn
from tools.bench.live import AUDIT, nodes_for, outputs


class Saved(Struct, frozen=True):
    """One file, with the formats that were written from it."""

    pods: int
    formats: str
    file_mib: float
    audit: Summary
    loads: Summary | None
    """None where it could not read the file: of a large one it builds more than a small machine can hold."""

    @property
    def wall_ratio(self) -> tuple[float, float] | None:
        """To `orjson.loads`: of the minima, of the medians."""
        if self.loads is None:
            return None
        return self.audit.wall_min / self.loads.wall_min, self.audit.wall_median / self.loads.wall_median


def possible() -> bool:
    """Whether there is an orjson to compare with."""
    return find_spec("orjson") is not None


def measure(pods: int, formats: Sequence[str], repeats: int, folder: Path) -> list[Saved]:
    """Measure one size: the table alone, and all formats that are wanted."""
    path = _dump(pods)
    audit = [*AUDIT, "-f", str(path)]
    costs = in_turn(
        {
            "loads": [PYTHON, "-m", "tools.bench.baseline", "loads", str(path)],
            "table": [*audit, "-o", f"table={folder / 'table'}"],
            "all": [*audit, *outputs(formats, folder)],
        },
        repeats,
        may_fail=("loads",),
    )
    size = round(path.stat().st_size / (1 << 20), 1)
    return [
        Saved(pods, "table", size, costs["table"], costs.get("loads")),
        Saved(pods, ",".join(formats), size, costs["all"], costs.get("loads")),
    ]


def _dump(pods: int) -> Path:
    """The cluster's file, beside its pages; written when it is first asked for."""
    nodes = nodes_for(pods)
    path = Store(Cluster(Size(nodes, pods))).folder / "kubectl.json"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        command = [
            PYTHON,
            "-m",
            "tests.simulator",
            "--nodes",
            str(nodes),
            "--pods",
            str(pods),
            "--dump",
            str(unfinished),
        ]
        subprocess.run(command, cwd=ROOT, env=environment(), check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        unfinished.replace(path)
    return path
