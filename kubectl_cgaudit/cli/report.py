"""`kubectl cgaudit report`."""

import click

from kubectl_cgaudit.cli import output
from kubectl_cgaudit.report.formats import FORMATS

_INCOMPLETE = 3


@click.command("report")
@click.argument("file")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FORMAT[=FILE]",
    help=f"{', '.join(FORMATS)}; repeat with =FILE to write several in one run. [default: table]",
)
def report_command(file: str, outputs: tuple[str, ...]) -> int:
    """Write a saved JSON audit in any format, byte for byte as the first run would have written it.

    \b
    Example: kubectl cgaudit report audit.json.gz -o html=audit.html -o markdown=ticket.md

    FILE is what -o json wrote, gzip or not; - is standard input. An incomplete audit exits with 3 again.
    """
    from kubectl_cgaudit.collect.input import name_of, read_bytes
    from kubectl_cgaudit.judge.saved import REMEDY, load

    wanted = output.parse(outputs, FORMATS)
    audit = load(read_bytes(file, REMEDY), name_of(file))
    output.deliver_audit(audit, wanted)
    return 0 if audit.coverage.complete else _INCOMPLETE
