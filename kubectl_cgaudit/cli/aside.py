"""What is said on standard error, beside the report: nobody's to lose a report or an exit code over."""

import sys

import click

from kubectl_cgaudit.cli.terminal import COLON, in_workflow
from kubectl_cgaudit.report.escape import without_commands


def say(text: str) -> None:
    """Write a line to standard error. Where that is closed, full or broken, nobody listens, and the work goes on."""
    if sys.stderr is None:
        return
    try:
        click.echo(without_commands(text, COLON) if in_workflow() else text, err=True)
    except OSError:
        sys.stderr = None
