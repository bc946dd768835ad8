"""The audit itself, and the group its sister commands hang on."""

import os
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kubectl_cgaudit import __version__
from kubectl_cgaudit.cli import options, output, policy, spared
from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.commands import Commands, load
from kubectl_cgaudit.cli.repeatable import Repeatable
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.formats import OF_AN_AUDIT

if TYPE_CHECKING:
    from kubectl_cgaudit.audit.run import Run
    from kubectl_cgaudit.audit.saved import Saved
    from kubectl_cgaudit.collect.model import Cluster
    from kubectl_cgaudit.detect.target import Scenario

_EPILOG = """\b
Examples:
  kubectl cgaudit --states states.yaml --to v2      when you know what the nodes run
  kubectl cgaudit --what-if 1                       what the first action would change
  kubectl get nodes,pods -A -o json | kubectl cgaudit -f -
  kubectl cgaudit -o table -o bundle=audit.zip      the attachment of a change ticket

\b
Exit codes: 0 done, 1 could not do it, 2 wrong usage, 3 done but incomplete or
--fail-on not decided, 4 findings at or above --fail-on, which wins over 3.
Needs: list on nodes and pods."""


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@options.source_options
@options.to_option
@options.what_if_option
@output.option(OF_AN_AUDIT)
@click.option(
    "--threshold",
    "thresholds",
    cls=Repeatable,
    multiple=True,
    metavar="NAME=VALUE",
    help="Smallest change that is reported: system-loss=10%, system-gain=10%, pod-move=5%, outweighed=10, "
    "outweighed-reserve=5, divisible=5.",
)
@policy.policy_options
@click.option(
    "--reproducible", is_flag=True, help="Leave the time out of the reports: the same input then gives the same bytes."
)
@click.option(
    "--redact",
    is_flag=True,
    help="Write pseudonyms for the names of nodes, namespaces, workloads, pods and containers. The same name keeps its own in "
    "every report.",
)
@click.version_option(__version__, "--version", message="kubectl cgaudit %(version)s")
@click.pass_context
def group(ctx: click.Context, /, to: str, outputs: tuple[str, ...], thresholds: tuple[str, ...], **flags: Any) -> int:
    """Say which workloads gain or lose CPU priority when nodes move to cgroup v2 or to another runc or crun.

    \b
      kubectl cgaudit                       audit the cluster you are connected to
      kubectl cgaudit nodes                 see what each node runs, and how to find out
      kubectl cgaudit -o html=audit.html    report to the people who approve the change

    It predicts the whole cgroup tree of every node, before and after. Shares hold when a node's CPU is full. An unknown is never
    taken for safe.
    """
    if ctx.invoked_subcommand:
        # A flag before the command counts as if it stood behind it: `kubectl cgaudit -f x tree`.
        given = {n: v for n, v in ctx.params.items() if ctx.get_parameter_source(n) is not ParameterSource.DEFAULT}
        options = load(ctx.invoked_subcommand).params
        stray = sorted(set(given) - {option.name for option in options})
        if stray:
            flag = next(option.opts[0] for option in ctx.command.params if option.name == stray[0])
            if any(flag in option.opts for option in options):
                raise UsageError(f"{flag} is written behind {ctx.invoked_subcommand}, not before it")
            raise UsageError(f"{flag} is no flag of {ctx.invoked_subcommand}; leave it out")
        ctx.default_map = {ctx.invoked_subcommand: given}
        return 0
    return _audit(to, outputs, thresholds, flags)


def _audit(to: str, outputs: tuple[str, ...], thresholds: tuple[str, ...], flags: dict[str, Any]) -> int:

    from kubectl_cgaudit.actions.remedies import acted
    from kubectl_cgaudit.audit import records, run
    from kubectl_cgaudit.audit import thresholds as judged
    from kubectl_cgaudit.audit.saved import Saved
    from kubectl_cgaudit.cli.progress import Progress
    from kubectl_cgaudit.cli.reading import read
    from kubectl_cgaudit.collect.memory import uncollected
    from kubectl_cgaudit.detect import target as targets
    from kubectl_cgaudit.report.findings import described

    target = targets.parse(to)
    wanted = output.parse(outputs, OF_AN_AUDIT, spared.inputs(flags, target.file), flags["baseline"])
    chosen = options.source(flags)
    judging = policy.read(flags["policy"], flags["baseline"], flags["fail_on"], flags["fail_on_certainty"])
    limits, stamp = judged.parse(judging.thresholds(thresholds)), _stamp(reproducible=flags["reproducible"])
    cluster, rules = read(chosen, measured=any(each.format == "bundle" for each in wanted))
    with uncollected():
        with Progress("judging") as progress:
            made = run.run(cluster, rules, target, limits, stamp, progress)
            if flags["what_if"]:
                made = _changed(made, cluster, target, flags["what_if"])
            acting = acted(made, cluster, progress)
            result = described(policy.judged(acting, judging))
        saved = Saved(result, records.containers(result, made.tables, made.judged))
        shown = _redacted(saved, cluster) if flags["redact"] else saved
        output.deliver_audit(shown, wanted, lambda: _bundle(shown, None if flags["redact"] else cluster))
    for what in result.coverage.unmatched:
        say(f"check what was said: {visible(what)}")
    return policy.exit_code(result, judging)


def _changed(made: "Run", cluster: "Cluster", target: "Scenario", said: tuple[str, ...]) -> "Run":
    """The audit with what --what-if names. The numbers are those of the actions without it."""
    from kubectl_cgaudit.actions.chosen import chosen
    from kubectl_cgaudit.actions.remedies import proposals
    from kubectl_cgaudit.actions.whatif import apply

    return apply(made, cluster, target, *chosen(said, cluster, lambda: proposals(made, cluster)))


def _redacted(saved: "Saved", cluster: "Cluster") -> "Saved":
    from kubectl_cgaudit.report.findings import described
    from kubectl_cgaudit.report.redact import KEY, redacted

    told = redacted(saved, cluster, os.environ.get(KEY, ""))
    return told._replace(audit=described(told.audit))


def _bundle(saved: "Saved", cluster: "Cluster | None") -> bytes:
    """The bundle; without a cluster it has no snapshot, whose names are the real ones."""
    from kubectl_cgaudit.collect.snapshot import encode, pack
    from kubectl_cgaudit.report.bundle import packed
    from kubectl_cgaudit.report.escape import json_bytes

    return packed(saved, None if cluster is None else pack(json_bytes(encode(cluster))))


def _stamp(*, reproducible: bool) -> str | None:
    """The time that the report carries: of SOURCE_DATE_EPOCH if it is set, else this moment."""
    when = policy.epoch() or policy.now()
    return None if reproducible else when.strftime("%Y-%m-%dT%H:%M:%SZ")
