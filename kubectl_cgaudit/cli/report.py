"""`kubectl cgaudit report`."""

import click

from kubectl_cgaudit.cli import output
from kubectl_cgaudit.cli import policy as policies
from kubectl_cgaudit.report.formats import FORMATS


@click.command("report")
@click.argument("file")
@output.option(FORMATS)
@policies.policy_options
def report_command(
    file: str,
    outputs: tuple[str, ...],
    policy: str | None,
    baseline: str | None,
    fail_on: str,
    fail_on_certainty: str,
) -> int:
    """Write a saved JSON audit in any format, byte for byte as the first run would have written it.

    \b
    Example: kubectl cgaudit report audit.json.gz -o html=audit.html -o markdown=ticket.md

    FILE is what -o json wrote, gzip or not; - is standard input. An incomplete audit exits with 3 again. A policy and a
    baseline are part of the audit they were given for; where it has none, they may be given here.
    """
    from kubectl_cgaudit.audit.saved import REMEDY, load
    from kubectl_cgaudit.collect.input import name_of, read_bytes
    from kubectl_cgaudit.report.findings import described

    wanted = output.parse(outputs, FORMATS, (file, policy), baseline)
    judging = policies.read(policy, baseline, fail_on, fail_on_certainty)
    saved = load(read_bytes(file, REMEDY), name_of(file))
    audit = described(policies.again(saved.audit, judging, name_of(file)))
    output.deliver_audit(saved._replace(audit=audit), wanted)
    return policies.exit_code(audit, judging)
