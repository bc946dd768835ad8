"""What is said on standard error, beside the report: nobody's to lose a report or an exit code over."""

import sys

import click


def say(text: str) -> None:
    """Write a line to standard error. Where that is closed, full or broken, nobody listens, and the work goes on."""
    if sys.stderr is None:
        return
    try:
        click.echo(text, err=True)
    except OSError:
        sys.stderr = None
