"""python -m tools.fuzz: damaged inputs for every reader, or faults of an API server, and what came of them."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

import click

from tools.fuzz import faults
from tools.fuzz.check import Trouble, randomness, run
from tools.fuzz.targets import TARGETS

_PART = 500
_PLANS = 50
_SHOWN = 30
_Task = tuple[str, int, int, int]
_Result = tuple[str, int, int, list[Trouble]]


def tasks(inputs: int, seed: int, only: str = "") -> list[_Task]:
    """Parts of the run: target, seed, first input, end."""
    chosen = {name: part for name, (_, part) in TARGETS.items() if not only or name == only}
    whole, found = sum(chosen.values()), []
    for name, part in chosen.items():
        end = -(-inputs * part // whole)
        found += [(name, seed, at, min(at + _PART, end)) for at in range(0, end, _PART)]
    return found


def work(task: _Task) -> _Result:
    """Run one part: how many inputs, how many had a result, and what was not handled."""
    name, seed, begin, end = task
    target = TARGETS[name][0]
    outcomes = [run(name, target, seed, number) for number in range(begin, end)]
    return name, end - begin, sum(each is True for each in outcomes), [e for e in outcomes if isinstance(e, Trouble)]


def disturb(task: tuple[int, int, int]) -> tuple[int, list[str]]:
    """Read the simulated cluster under random faults: seed, first plan, end. How many plans, and what was wrong."""
    seed, begin, end = task
    found = []
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, faults.world(Path(folder)) as world:
        for number in range(begin, end):
            plan = faults.chance(Random(f"{seed} {number}"))  # noqa: S311 - no secret depends on it
            problem = faults.wrong(world.right, world.ask(plan), plan)
            found += [f"plan {number}: {faults.shown(plan)}: {problem}"] if problem else []
    return end - begin, found


def run_faults(plans: int, seed: int, processes: int) -> int:
    """Random faults together, so many times."""
    began, tried, troubles = time.monotonic(), 0, list[str]()
    parts = [(seed, at, min(at + _PLANS, plans)) for at in range(0, plans, _PLANS)]
    with ProcessPoolExecutor(processes) as pool:
        for count, found in pool.map(disturb, parts):
            tried += count
            troubles += found
            click.echo(f"\r{tried} audits disturbed, {len(troubles)} wrong", nl=False, err=True)
    click.echo(err=True)
    for each in troubles[:_SHOWN]:
        click.echo(f"wrong: {each}")
    click.echo(f"{tried} audits disturbed, {len(troubles)} wrong, {time.monotonic() - began:.0f} s")
    return 1 if troubles else 0


def main() -> int:
    """Run, and say what came of it: 1 if anything was not handled."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=list(TARGETS), default="")
    parser.add_argument("--number", type=int, help="only this input of --only, its error not caught")
    parser.add_argument("--faults", type=int, default=0, help="so many clusters with random faults instead of inputs")
    given = parser.parse_args()
    if given.number is not None:
        click.echo(TARGETS[given.only][0](randomness(given.only, given.seed, given.number)))
        return 0
    if given.faults:
        return run_faults(given.faults, given.seed, given.processes)
    began = time.monotonic()
    came: Counter[str] = Counter()
    results: Counter[str] = Counter()
    troubles: list[Trouble] = []
    with ProcessPoolExecutor(given.processes) as pool:
        for name, inputs, had, trouble in pool.map(work, tasks(given.inputs, given.seed, given.only)):
            came[name] += inputs
            results[name] += had
            troubles += trouble
            click.echo(f"\r{came.total()} inputs, {len(troubles)} not handled", nl=False, err=True)
    click.echo(err=True)
    for name, inputs in came.items():
        click.echo(
            f"{name}: {inputs} inputs, {results[name]} results, {inputs - results[name]} errors in words or not handled"
        )
    alike: dict[tuple[str, str], list[Trouble]] = {}
    for each in troubles:
        alike.setdefault((each.target, each.said.partition(":")[0]), []).append(each)
    for some in alike.values():
        one = some[0]
        click.echo(f"not handled, {len(some)}: --only {one.target} --seed {one.seed} --number {one.number}: {one.said}")
    click.echo(f"{came.total()} inputs, {len(troubles)} not handled, {time.monotonic() - began:.0f} s")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
