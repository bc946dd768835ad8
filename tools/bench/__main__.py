"""python -m tools.bench: measure an audit against the least that a client can do, and print ratios of the same run."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tools.bench import history, live, metrics, saved, startup, tables

FORMATS = (
    *("table", "wide", "json", "yaml", "csv", "markdown", "html", "sarif", "junit", "prometheus"),
    *("ndjson", "parquet", "audit"),
)
_STARTS = 5


def _sizes(text: str) -> list[int]:
    return sorted({int(size) for size in text.split(",") if size.strip()})


def _paces(text: str) -> list[float]:
    return sorted({float(pace) for pace in text.split(",")}, reverse=True)


def main() -> None:
    """Measure, print, and add to the history."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("--pods", type=_sizes, default="1000,10000,50000,150000", help="sizes, with commas between")
    parser.add_argument("--files", type=_sizes, help="sizes to read from a file; default those of --pods, '' for none")
    parser.add_argument("--pace", type=_paces, default="0.068,0", help="seconds that every page takes; 0 is unpaced")
    parser.add_argument("--formats", default="all", help="what is written, with commas between; default every format")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--history", type=Path, help="add the run to this file, and compare with the last in it")
    given = parser.parse_args()
    formats = list(FORMATS) if given.formats == "all" else given.formats.split(",")
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        started = startup.measure(given.repeats * _STARTS)
        parsed = metrics.measure(given.repeats * _STARTS)
        lived = _live(given.pods, given.pace, formats, given.repeats, folder)
        read = _saved(given.pods if given.files is None else given.files, formats, given.repeats, folder)
    run = history.Run(
        history.commit(),
        *history.machine(),
        os.cpu_count() or 0,
        round(load, 2),
        given.repeats,
        formats,
        started,
        lived,
        read,
        parsed,
    )
    before = history.read(given.history) if given.history else []
    print(tables.report(run, before[-1] if before else None))  # noqa: T201 - this is a command
    if given.history:
        history.append(given.history, run)


def _live(sizes: list[int], paces: list[float], formats: list[str], repeats: int, folder: Path) -> list[live.Live]:
    found = []
    for pods in sizes:
        _say(f"{pods} pods: warming up")
        live.warm(pods, folder)
        for each in paces:
            _say(f"{pods} pods: live, {each:g} s a page")
            found.append(live.measure(pods, each, formats, repeats, folder))
            _say(
                f"  wall {found[-1].wall_ratio[0]:.2f}x, CPU {found[-1].cpu_ratio[0]:.2f}x, {found[-1].audit.peak_mib:.0f} MiB"
            )
    return found


def _saved(sizes: list[int], formats: list[str], repeats: int, folder: Path) -> list[saved.Saved]:
    if sizes and not saved.possible():
        _say("orjson is not installed (pip install orjson): files are not compared")
        return []
    found = []
    for pods in sizes:
        _say(f"{pods} pods: from a file")
        found += saved.measure(pods, formats, repeats, folder)
    return found


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
