"""The benchmarks run and say what they measured; how fast anything is, no test asserts."""

import os
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from kubectl_cgaudit.collect import live as product
from kubectl_cgaudit.report.formats import FORMATS as PRODUCT_FORMATS
from tests.kubelet_support import HOSTILE_METRICS
from tools.bench import cost, history, tables
from tools.bench.__main__ import FORMATS
from tools.bench.baseline import LISTS
from tools.bench.cost import Cost, Summary
from tools.bench.history import Run
from tools.bench.live import Live
from tools.bench.metrics import Metrics
from tools.bench.saved import Saved
from tools.bench.startup import Startup

ROOT = Path(__file__).parent.parent


AWAY = [sys.executable, "-c", "import sys; sys.stderr.write('away'); sys.exit(7)"]


def summary(wall: float, cpu: float, peak: float) -> Summary:
    return Summary(wall, wall * 2, cpu, cpu * 2, peak)


SMALL = Live(50_000, 1666, 0.068, summary(12, 9, 150), summary(10, 2, 20), summary(11, 3, 40))
LARGE = Live(150_000, 5000, 0.068, summary(37.5, 24, 210), summary(30, 5, 20), summary(32, 8, 40))
UNPACED = Live(150_000, 5000, 0.0, summary(26, 25, 210), summary(8, 5, 20), summary(13, 8, 40))
RUN = Run(
    "0123456789ab",
    "3.11.7",
    "Linux x86_64",
    2,
    0.5,
    3,
    ["table", "json"],
    [Startup("--help", 1.6, summary(0.06, 0.05, 25), summary(0.04, 0.04, 17))],
    [SMALL, LARGE, UNPACED],
    [Saved(150_000, "table,json", 2600.0, summary(30, 29, 2900), summary(20, 20, 9000))],
    [Metrics("recorded", 10, (0.6, 0.75), (0.5, 0.5)), Metrics("damaged: a", 1000, (600.0, 600.0), (0.5, 0.5))],
)


def test_a_tiny_bench_runs_prints_its_ratios_and_keeps_them(tmp_path: Path) -> None:
    kept, size = tmp_path / "kept" / "history.jsonl", ["--pods", "30", "--repeats", "1", "--pace", "0.001,0"]
    command = [sys.executable, "-m", "tools.bench", *size, "--formats", "table,ndjson", "--history", str(kept)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    (run,) = history.read(kept)
    assert [(each.pods, each.nodes, each.pace) for each in run.live] == [(30, 3, 0.001), (30, 3, 0.0)]
    assert [each.command for each in run.startup] == ["--help", "convert 250m"]
    assert [each.text for each in run.metrics] == ["recorded", *(f"damaged: {name}" for name in HOSTILE_METRICS)]
    formats = ["table", "table,ndjson"] if find_spec("orjson") else []
    assert [each.formats for each in run.saved] == formats
    assert done.stdout == tables.report(run, None) + "\n"
    ratios = [each.wall_ratio for each in (*run.live, *run.startup, *run.saved)]
    ratios += [each.ratio for each in run.metrics]
    ratios += [each.cpu_ratio for each in (*run.live, *run.startup)]
    for least, median in ratios:
        assert least > 0
        assert median > 0
        assert f"{least:.2f}/{median:.2f}" in done.stdout
    line = kept.read_text()
    assert not [word for word in (str(ROOT), str(tmp_path), sys.executable, platform.node()) if word in line]


def test_the_report_says_what_is_met_and_what_is_missed() -> None:
    shown = [" ".join(line.split()) for line in tables.report(RUN, None).splitlines()]
    assert shown == [
        "commit 0123456789ab, Python 3.11.7, Linux x86_64, 2 cores, load 0.50 when it began",
        "3 repeats in turn: minimum/median; ratios are of minima/of medians; peak is the greatest",
        "",
        "start-up ms import click, ms ratio ratio of CPU",
        "--help 60/120 40/80 1.50/1.50 1.25/1.25",
        "",
        "a kubelet's metrics CPU ms a MB recorded text split, CPU ms a MB ratio",
        "recorded 0.60/0.75 0.50/0.50 1.20/1.50",
        "damaged: a 600.00/600.00 0.50/0.50 1200.00/1200.00",
        "",
        "live: pods ms a page wall s raw paging s ratio CPU s decode loop CPU s ratio peak MiB to 50k",
        "50,000 68 12.00/24.00 10.00/20.00 1.20/1.20 9.00/18.00 3.00/6.00 3.00/3.00 150 1.00",
        "150,000 68 37.50/75.00 30.00/60.00 1.25/1.25 24.00/48.00 8.00/16.00 3.00/3.00 210 1.40",
        "150,000 0 26.00/52.00 8.00/16.00 3.25/3.25 25.00/50.00 8.00/16.00 3.12/3.12 210 -",
        "",
        "growth per 1,000 pods ms a page wall ms CPU ms decode loop CPU ms peak MiB",
        "50,000 to 150,000 68 255 150 50 0.60",
        "",
        "file: pods written file MiB wall s orjson.loads s ratio peak MiB over the file orjson peak",
        "150,000 2 formats 2600 30.00/60.00 20.00/40.00 1.50/1.50 2900 +300 9000",
        "",
        "bar (of minima) measured at most",
        "--help: import click 1.50 1.6 met",
        "metrics, recorded: recorded split 1.20 10 met",
        "metrics, damaged: a: recorded split 1200.00 1000 missed by 20%",
        "wall: raw paging (150,000 pods, paced) 1.25 1.25 met",
        "CPU: decode loop (150,000 pods, paced) 3.00 2.5 missed by 20%",
        "peak MiB (150,000 pods, paced) 210.00 200 missed by 5%",
        "peak: peak at 50,000 (150,000 pods, paced) 1.40 1.3 missed by 8%",
        "file wall: orjson.loads (150,000 pods, every format) 1.50 1 missed by 50%",
        "file peak MiB (150,000 pods, every format) 2900.00 2800 missed by 4%",
    ]


def test_a_file_that_nothing_else_can_read_is_told_without_a_ratio() -> None:
    (file,) = RUN.saved
    alone = msgspec.structs.replace(
        RUN, startup=[], live=[], metrics=[], saved=[msgspec.structs.replace(file, loads=None)]
    )
    shown = [" ".join(line.split()) for line in tables.report(alone, None).splitlines()]
    assert shown[-6:] == [
        "file: pods written file MiB wall s orjson.loads s ratio peak MiB over the file orjson peak",
        "150,000 2 formats 2600 30.00/60.00 - - 2900 +300 -",
        "",
        "bar (of minima) measured at most",
        "file wall: orjson.loads (150,000 pods, every format) - 1 not measured",
        "file peak MiB (150,000 pods, every format) 2900.00 2800 missed by 4%",
    ]


def test_a_run_is_compared_with_the_last_of_the_same_size() -> None:
    slower = msgspec.structs.replace(LARGE, audit=summary(60, 40, 420))
    before = msgspec.structs.replace(RUN, commit="ba9876543210", live=[slower])
    shown = [" ".join(line.split()) for line in tables.report(RUN, before).splitlines()]
    at = shown.index("since ba9876543210 ms a page wall ratio CPU ratio peak MiB")
    assert shown[at + 1 : at + 3] == ["150,000 68 2.00 -> 1.25 5.00 -> 3.00 420 -> 210", ""]


def test_the_baselines_ask_for_the_lists_of_an_audit_and_all_formats_are_written() -> None:
    asked = [
        (each.kind, f"{each.path}?limit=500{each.query}") for each in (product.NODES, product.PODS, *product.OPTIONAL)
    ]
    assert list(LISTS) == asked
    assert FORMATS == PRODUCT_FORMATS


def test_a_history_grows_by_a_line_a_run(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert history.read(path) == []
    history.append(path, RUN)
    history.append(path, msgspec.structs.replace(RUN, commit="unknown"))
    assert history.read(path) == [RUN, msgspec.structs.replace(RUN, commit="unknown")]


def test_minimum_median_and_greatest() -> None:
    costs = [Cost(3.0, 2.0, 1 << 20), Cost(1.0, 2.5, 3 << 20), Cost(2.0, 1.5, 2 << 20)]
    assert cost.summary(costs) == Summary(1.0, 2.0, 1.5, 2.0, 3.0)


def test_a_command_that_fails_measures_nothing() -> None:
    with pytest.raises(RuntimeError, match="ended with 7: away"):
        cost.run(AWAY)


def test_only_what_may_fail_costs_no_other_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {"away": AWAY, "here": [sys.executable, "-c", ""]}
    assert list(cost.in_turn(commands, 2, may_fail=["away"])) == ["here"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("not compared: ")
    assert line.endswith(" ended with 7: away")
    with pytest.raises(RuntimeError, match="ended with 7: away"):
        cost.in_turn(commands, 2)
