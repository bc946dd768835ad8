"""`kubectl cgaudit diff`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from kubectl_cgaudit.cli import options, output
from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.codes import FOUND, INCOMPLETE
from kubectl_cgaudit.cli.options import DEFAULT_TO
from kubectl_cgaudit.cli.progress import Progress
from kubectl_cgaudit.cli.repeatable import Repeatable
from kubectl_cgaudit.detect import target as targets
from kubectl_cgaudit.detect.target import Scenario
from kubectl_cgaudit.errors import InputError, UsageError
from kubectl_cgaudit.plain import as_json, as_yaml
from kubectl_cgaudit.report.escape import visible

if TYPE_CHECKING:
    from kubectl_cgaudit.audit.model import Audit
    from kubectl_cgaudit.audit.saved import Saved

_FORMATS = ("table", "markdown", "json", "html", "yaml")
_REMEDY = (
    "give a snapshot (kubectl cgaudit snapshot), an audit (-o json) or what kubectl get nodes,pods -A -o json printed"
)
_STAYS = Scenario("now", v2=False, new_runtime=False, runtimes=(), kubelet=None, rules=())


class _Head(Struct, rename="camel"):
    """Enough of a file to say what it is."""

    kind: str | None = None
    schema: str | None = None
    schema_version: str | None = None


@click.command("diff")
@click.argument("before")
@click.argument("after")
@options.to(f"What was predicted for BEFORE, as for the audit; an audit holds its own. [default: {DEFAULT_TO}]")
@options.states("What the nodes of BEFORE ran: a whole states file, if it is no audit.")
@options.states(
    "What all nodes of AFTER run: a whole states file, not only what changed, if it is no audit. Without it only AFTER's own "
    "evidence counts.",
    "--states-after",
)
@click.option(
    "--threshold",
    "thresholds",
    cls=Repeatable,
    multiple=True,
    metavar="NAME=VALUE",
    help="Smallest change of a share that is reported: system-loss=10%, system-gain=10%, pod-move=5%. An audit holds its own.",
)
@output.option(_FORMATS)
@click.option("--exit-code", is_flag=True, help="Exit with 4 if something moved that nobody predicted.")
def diff_command(
    before: str,
    after: str,
    to: str | None,
    states: str | None,
    states_after: str | None,
    thresholds: tuple[str, ...],
    outputs: tuple[str, ...],
    *,
    exit_code: bool,
) -> int:
    """Compare two moments: which predictions for BEFORE came true in AFTER, and what moved that nobody predicted.

    \b
    Example: kubectl cgaudit diff before.json.gz after.json.gz --states old.yaml --states-after new.yaml

    BEFORE and AFTER are snapshots, audits of -o json, or what kubectl get nodes,pods -A -o json printed. Of AFTER only
    its now counts. Exits with 3 if one of them is incomplete.
    """
    from kubectl_cgaudit.compare.diff.build import diff

    target = targets.parse(to) if to is not None else None
    wanted = output.parse(outputs, _FORMATS, (before, after, states, states_after, target.file if target else None))
    if before == after == "-":
        raise UsageError("- can be given once: there is one standard input")
    given = {"--to": to, "--states": states, "--threshold": thresholds}
    first = _read(before, given, target or targets.parse(DEFAULT_TO), states, thresholds)
    second = _read(after, {"--states-after": states_after}, _STAYS, states_after, ())
    with Progress("comparing") as progress:
        result = diff(first, second, progress)
    del first
    output.deliver([(each, _text(each, result)) for each in wanted])
    for name, side in (("before", result.before), ("after", result.after)):
        for gap in side.gaps:
            say(f"incomplete {name}: {visible(gap)}")
    if states and not states_after and second.audit.target.to == _STAYS.to and _open(second.audit):
        say("--states is what BEFORE ran; what runs now is said with --states-after")
    if exit_code and result.summary.moved:
        return FOUND
    return 0 if result.before.complete and result.after.complete else INCOMPLETE


def _open(audit: "Audit") -> bool:
    return any(node.confidence == "unknown" for node in audit.nodes)


def _text(each: output.Output, result: Any) -> str:
    from kubectl_cgaudit.report import diff_html, diff_markdown, diff_table

    write: dict[str, Callable[[Any], str]] = {
        "table": lambda found: diff_table.render(found, output.screen(each)),
        "markdown": diff_markdown.render,
        "json": as_json,
        "html": diff_html.render,
        "yaml": as_yaml,
    }
    return write[each.format](result)


def _read(
    path: str, given: dict[str, Any], target: Scenario, states: str | None, thresholds: tuple[str, ...]
) -> "Saved":
    """The audit that a file holds, or that is made of it. `given` are the flags that a finished audit does not take."""
    from kubectl_cgaudit.audit import records, run
    from kubectl_cgaudit.audit import thresholds as judged
    from kubectl_cgaudit.audit.saved import Saved, load
    from kubectl_cgaudit.collect import files, snapshot
    from kubectl_cgaudit.collect.input import name_of, read_bytes
    from kubectl_cgaudit.detect.states import load as load_states

    data = read_bytes(path, _REMEDY)
    if _is_audit(data):
        for flag, value in given.items():
            if value:
                raise UsageError(f"{name_of(path)} is an audit, which has its own states and target; leave {flag} out")
        return load(data, name_of(path))
    rules, limits = load_states(states) if states else (), judged.parse(thresholds)
    if path == "-" and not snapshot.is_snapshot(data):
        raise InputError(f"standard input holds neither a snapshot nor an audit; save it to a file, or {_REMEDY}")
    with Progress() as progress:
        cluster = files.of_bytes(data, path, progress)
    with Progress("judging") as progress:
        made = run.run(cluster, rules, target, limits, None, progress)
    return Saved(made.audit, records.containers(made.audit, made.tables, made.judged))


def _is_audit(data: bytes) -> bool:
    if data.startswith(b"PK"):
        return True
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return head.kind is None and (head.schema is not None or head.schema_version is not None)
