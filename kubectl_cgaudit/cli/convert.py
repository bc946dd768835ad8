"""`kubectl cgaudit convert`."""

from typing import Any

import click

from kubectl_cgaudit.cgroups.weights import MAX_SHARES, MAX_WEIGHT, MIN_SHARES, MIN_WEIGHT
from kubectl_cgaudit.cli import output
from kubectl_cgaudit.errors import InputError, UsageError


@click.command("convert")
@click.argument("request", required=False)
@click.option("--shares", type=int, metavar="N", help=f"cgroup v1 shares, {MIN_SHARES}..{MAX_SHARES}.")
@click.option("--weight", type=int, metavar="N", help=f"cgroup v2 weight, {MIN_WEIGHT}..{MAX_WEIGHT}.")
@output.option(output.VIEW)
def convert_command(request: str | None, shares: int | None, weight: int | None, outputs: tuple[str, ...]) -> int:
    """Convert a CPU REQUEST such as 250m, shares or a weight with both formulas, and back.

    \b
    Example: kubectl cgaudit convert 250m
    """
    from kubectl_cgaudit.report import convert

    wanted = output.parse(outputs, output.VIEW)
    if sum(value is not None for value in (request, shares, weight)) != 1:
        raise UsageError("convert takes one of a CPU request such as 250m, --shares or --weight")
    if request is not None:
        result = _of_request(request)
    elif shares is not None:
        result = convert.of_shares(_within(shares, MIN_SHARES, MAX_SHARES, "--shares"), None)
    else:
        result = convert.of_weight(_within(weight or 0, MIN_WEIGHT, MAX_WEIGHT, "--weight"))
    output.deliver_view(wanted, lambda _: convert.as_text(result), lambda: result)
    return 0


def _of_request(text: str) -> dict[str, Any]:
    from kubectl_cgaudit.cgroups.weights import milli_to_shares
    from kubectl_cgaudit.collect.quantity import milli
    from kubectl_cgaudit.report import convert

    try:
        amount = milli(text)
    except InputError as error:
        raise UsageError(f"{error}; for shares or a weight write --shares N or --weight N") from None
    return convert.of_shares(milli_to_shares(amount), amount)


def _within(value: int, least: int, most: int, flag: str) -> int:
    if not least <= value <= most:
        raise UsageError(f"{flag} {value} is out of range; it must be {least}..{most}")
    return value
