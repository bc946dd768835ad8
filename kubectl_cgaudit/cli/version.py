"""`kubectl cgaudit version`."""

import platform

import click

from kubectl_cgaudit import __version__
from kubectl_cgaudit.cli import output

_WORDS = {
    "version": "kubectl cgaudit",
    "schemaVersion": "JSON schema",
    "catalogueDate": "platform catalogue",
    "python": "Python",
    "platform": "platform",
}


@click.command("version")
@output.option(output.VIEW)
def version_command(outputs: tuple[str, ...]) -> int:
    """Say which version this is, how new its knowledge is, and what it runs on. No cluster is asked.

    \b
    Example: kubectl cgaudit version -o json
    """
    wanted = output.parse(outputs, output.VIEW)
    found = facts()
    width = max(map(len, _WORDS.values())) + 2
    text = "".join(f"{_WORDS[name]:{width}}{value}\n" for name, value in found.items())
    output.deliver_view(wanted, lambda _: text, lambda: found)
    return 0


def facts() -> dict[str, str]:
    """The version, the JSON schema's, the newest row of the catalogue (YYYY-MM-DD), Python and the platform."""
    from kubectl_cgaudit.audit.model import SCHEMA
    from kubectl_cgaudit.detect.catalogue import catalogue

    return {
        "version": __version__,
        "schemaVersion": SCHEMA,
        "catalogueDate": max(row.date for row in catalogue().rows),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system().lower()}/{platform.machine().lower()}",
    }
