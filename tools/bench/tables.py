"""The tables that a run prints. Two figures in a cell are the minimum and the median of the repeats."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tools.bench.history import Run
from tools.bench.live import Live
from tools.bench.saved import Saved

WALL, CPU, PEAK_MIB, GROWTH, GROWS_FROM, BESIDE_MIB = 1.25, 2.5, 200, 1.3, 50_000, 200


def report(run: Run, before: Run | None) -> str:
    """Everything that was measured, and which bars it clears."""
    head = (
        f"commit {run.commit}, Python {run.python}, {run.platform}, {run.cores} cores, load {run.load:.2f} when it began\n"
        f"{run.repeats} repeats in turn: minimum/median; ratios are of minima/of medians; peak is the greatest"
    )
    parts = [
        head,
        _startup(run),
        _metrics(run),
        _live(run),
        _growth(run),
        _saved(run),
        _compared(run, before),
        _bars(run),
    ]
    return "\n\n".join(part for part in parts if part)


def _startup(run: Run) -> str:
    heads = ("start-up", "ms", "import click, ms", "ratio", "ratio of CPU")
    rows = [
        (
            each.command,
            _two(each.audit.wall_min * 1000, each.audit.wall_median * 1000, 0),
            _two(each.click.wall_min * 1000, each.click.wall_median * 1000, 0),
            _two(*each.wall_ratio),
            _two(*each.cpu_ratio),
        )
        for each in run.startup
    ]
    return _table(heads, rows)


def _metrics(run: Run) -> str:
    heads = ("a kubelet's metrics", "CPU ms a MB", "recorded text split, CPU ms a MB", "ratio")
    rows = [(each.text, _two(*each.read), _two(*each.split), _two(*each.ratio)) for each in run.metrics]
    return _table(heads, rows) if rows else ""


def _live(run: Run) -> str:
    heads = (
        "live: pods", "ms a page", "wall s", "raw paging s", "ratio", "CPU s", "decode loop CPU s", "ratio", "peak MiB", "to 50k",
    )  # fmt: skip
    rows = []
    for each in run.live:
        audit, base = each.audit, _at(run.live, GROWS_FROM, each.pace)
        rows.append(
            (
                f"{each.pods:,}",
                f"{each.pace * 1000:.0f}",
                _two(audit.wall_min, audit.wall_median),
                _two(each.raw.wall_min, each.raw.wall_median),
                _two(*each.wall_ratio),
                _two(audit.cpu_min, audit.cpu_median),
                _two(each.decode.cpu_min, each.decode.cpu_median),
                _two(*each.cpu_ratio),
                f"{audit.peak_mib:.0f}",
                f"{audit.peak_mib / base.audit.peak_mib:.2f}" if base else "-",
            )
        )
    return _table(heads, rows)


def _growth(run: Run) -> str:
    """What a thousand pods more cost, from size to size."""
    rows = []
    for pace in sorted({each.pace for each in run.live}, reverse=True):
        sizes = [each for each in run.live if each.pace == pace]
        for less, more in pairwise(sizes):
            thousands = (more.pods - less.pods) / 1000
            rows.append(
                (
                    f"{less.pods:,} to {more.pods:,}",
                    f"{pace * 1000:.0f}",
                    f"{(more.audit.wall_min - less.audit.wall_min) / thousands * 1000:.0f}",
                    f"{(more.audit.cpu_min - less.audit.cpu_min) / thousands * 1000:.0f}",
                    f"{(more.decode.cpu_min - less.decode.cpu_min) / thousands * 1000:.0f}",
                    f"{(more.audit.peak_mib - less.audit.peak_mib) / thousands:.2f}",
                )
            )
    heads = ("growth per 1,000 pods", "ms a page", "wall ms", "CPU ms", "decode loop CPU ms", "peak MiB")
    return _table(heads, rows) if rows else ""


def _saved(run: Run) -> str:
    heads = (
        "file: pods",
        "written",
        "file MiB",
        "wall s",
        "orjson.loads s",
        "ratio",
        "peak MiB",
        "over the file",
        "orjson peak",
    )
    rows = [
        (
            f"{each.pods:,}",
            each.formats if len(each.formats) < 10 else f"{each.formats.count(',') + 1} formats",
            f"{each.file_mib:.0f}",
            _two(each.audit.wall_min, each.audit.wall_median),
            _two(each.loads.wall_min, each.loads.wall_median) if each.loads else "-",
            _two(*each.wall_ratio) if each.wall_ratio else "-",
            f"{each.audit.peak_mib:.0f}",
            f"{each.audit.peak_mib - each.file_mib:+.0f}",
            f"{each.loads.peak_mib:.0f}" if each.loads else "-",
        )
        for each in run.saved
    ]
    return _table(heads, rows) if rows else ""


def _compared(run: Run, before: Run | None) -> str:
    """The same sizes in the last run of the history."""
    if before is None:
        return ""
    rows = []
    for each in run.live:
        then = _at(before.live, each.pods, each.pace)
        if then:
            ratios = [f"{old[0]:.2f} -> {new[0]:.2f}" for old, new in _both(then, each)]
            peaks = f"{then.audit.peak_mib:.0f} -> {each.audit.peak_mib:.0f}"
            rows.append((f"{each.pods:,}", f"{each.pace * 1000:.0f}", *ratios, peaks))
    return _table((f"since {before.commit}", "ms a page", "wall ratio", "CPU ratio", "peak MiB"), rows) if rows else ""


def _both(then: Live, now: Live) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    return [(then.wall_ratio, now.wall_ratio), (then.cpu_ratio, now.cpu_ratio)]


def _bars(run: Run) -> str:
    rows: list[tuple[str, float | None, float]] = [
        (f"{each.command}: import click", each.wall_ratio[0], each.bar) for each in run.startup
    ]
    rows += [(f"metrics, {each.text}: recorded split", each.ratio[0], each.bar) for each in run.metrics]
    paced = [each for each in run.live if each.pace]
    if paced:
        last = max(paced, key=lambda each: each.pods)
        at = f"{last.pods:,} pods, paced"
        base = _at(run.live, GROWS_FROM, last.pace)
        rows += [
            (f"wall: raw paging ({at})", last.wall_ratio[0], WALL),
            (f"CPU: decode loop ({at})", last.cpu_ratio[0], CPU),
            (f"peak MiB ({at})", last.audit.peak_mib, PEAK_MIB),
        ]
        if base and last.pods > base.pods:
            rows.append((f"peak: peak at {GROWS_FROM:,} ({at})", last.audit.peak_mib / base.audit.peak_mib, GROWTH))
    rows += [row for each in _largest(run.saved) for row in _file_bars(each)]
    return _table(("bar (of minima)", "measured", "at most", ""), [_bar(*row) for row in rows])


def _bar(name: str, found: float | None, most: float) -> tuple[str, str, str, str]:
    if found is None:
        return name, "-", f"{most:g}", "not measured"
    return name, f"{found:.2f}", f"{most:g}", "met" if found <= most else f"missed by {found / most - 1:.0%}"


def _largest(saved: Sequence[Saved]) -> list[Saved]:
    most = max((each.pods for each in saved), default=0)
    return [each for each in saved if each.pods == most]


def _file_bars(each: Saved) -> list[tuple[str, float | None, float]]:
    what = f"{each.pods:,} pods, {'table' if each.formats == 'table' else 'every format'}"
    return [
        (f"file wall: orjson.loads ({what})", each.wall_ratio[0] if each.wall_ratio else None, 1.0),
        (f"file peak MiB ({what})", each.audit.peak_mib, round(each.file_mib + BESIDE_MIB)),
    ]


def _at(live: Sequence[Live], pods: int, pace: float) -> Live | None:
    return next((each for each in live if each.pods == pods and each.pace == pace), None)


def _two(least: float, median: float, digits: int = 2) -> str:
    return f"{least:.{digits}f}/{median:.{digits}f}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
