"""How long it takes to say something: `--help` and `convert` against importing click, which both need."""

from msgspec import Struct

from tools.bench.cost import PYTHON, Summary, in_turn, run
from tools.bench.live import AUDIT

_CLICK = [PYTHON, "-c", "import click"]
_COMMANDS = {"--help": (["--help"], 1.6), "convert 250m": (["convert", "250m"], 2.0)}


class Startup(Struct, frozen=True):
    """A command that reads nothing, and how many times as long as the import it may take."""

    command: str
    bar: float
    audit: Summary
    click: Summary

    @property
    def wall_ratio(self) -> tuple[float, float]:
        """To the import: of the minima, of the medians."""
        return self.audit.wall_min / self.click.wall_min, self.audit.wall_median / self.click.wall_median

    @property
    def cpu_ratio(self) -> tuple[float, float]:
        """The same of CPU seconds, which other processes disturb less."""
        return self.audit.cpu_min / self.click.cpu_min, self.audit.cpu_median / self.click.cpu_median


def measure(repeats: int) -> list[Startup]:
    """Measure all of them in turn."""
    commands = {name: [*AUDIT, *words] for name, (words, _) in _COMMANDS.items()}
    for command in commands.values():
        run(command)
    costs = in_turn({"click": _CLICK, **commands}, repeats)
    return [Startup(name, bar, costs[name], costs["click"]) for name, (_, bar) in _COMMANDS.items()]
