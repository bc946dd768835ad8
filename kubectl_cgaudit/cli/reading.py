"""Reads what the flags name: the cluster or the files, and what they say of the nodes."""

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kubectl_cgaudit.audit.cases import node_cases
from kubectl_cgaudit.audit.inputs import Tables, tables
from kubectl_cgaudit.audit.run import Run, run
from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.audit.unmatched import unmatched
from kubectl_cgaudit.cli import options
from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.progress import Progress as ProgressLine
from kubectl_cgaudit.collect.model import Cluster, Only
from kubectl_cgaudit.collect.progress import Progress
from kubectl_cgaudit.collect.reduce import Selects
from kubectl_cgaudit.collect.selector import parse
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.detect.target import Scenario
from kubectl_cgaudit.errors import InterruptedAuditError, UsageError
from kubectl_cgaudit.report.escape import visible

if TYPE_CHECKING:
    from kubectl_cgaudit.compare.views import Pods

_PROXY_WARNING = (
    "warning: --kubelet=proxy uses nodes/proxy; that permission also allows running commands in every container of the node "
    "(kubernetes#136550). Do not grant it for this tool alone: --kubelet=direct inside the cluster needs less."
)


def read(
    chosen: options.Source, *, measured: bool = True, only: Only | None = None
) -> tuple[Cluster, tuple[Rule, ...]]:
    """Read the input, with progress for whoever watches, and the warning that nodes/proxy deserves."""
    rules = states.load(chosen.states) if chosen.states else ()
    if chosen.kubelet == "proxy":
        say(_PROXY_WARNING)
    with ProgressLine() as progress:
        try:
            return collect(chosen, progress, measured=measured, only=only), rules
        except KeyboardInterrupt:
            raise InterruptedAuditError(progress.last) from None


class Predicted(NamedTuple):
    """A cluster and the tables of its nodes."""

    cluster: Cluster
    tables: Tables
    then: "Pods | None" = None
    """Makes of a node's pods those of after the move, where --what-if changes them."""


def predict(target: Scenario, flags: dict[str, Any], home: str = "", only: Only | None = None) -> Predicted:
    """Read the input and make the tables of its nodes. What of --states and --to speaks of nothing there is said on stderr.

    `home` is the namespace that is read where not all of them can be and none is chosen. `only` says of a running
    cluster which nodes are needed; what is said of others is no mistake then.
    """
    chosen = _without_labels(flags, home)
    if flags["what_if"]:
        # The actions are those of the whole cluster.
        return _predict_changed(target, flags, home)
    if only and target.like:
        only = msgspec.structs.replace(only, nodes=(*only.nodes, target.like))
    cluster, rules = read(chosen, only=only)
    with ProgressLine("predicting") as progress:
        nodes = node_cases(cluster, rules, target, progress)
        found = tables(nodes, cluster)
    for what in unmatched(cluster, nodes, rules, target) if chosen.files or not only else ():
        say(f"check what was said: {visible(what)}")
    return Predicted(cluster, found)


def _predict_changed(target: Scenario, flags: dict[str, Any], home: str) -> Predicted:
    from kubectl_cgaudit.actions.change import changed_node, changed_pods
    from kubectl_cgaudit.actions.chosen import chosen
    from kubectl_cgaudit.actions.remedies import proposals

    cluster, made = read_audited(target, flags, home)
    change = chosen(flags["what_if"], cluster, lambda: proposals(made, cluster)).change
    of_nodes = change.of_nodes()
    nodes = tuple(changed_node(node, of_nodes.get(node.node.name, ())) for node in made.tables.nodes)
    changed = msgspec.structs.replace(made.tables, nodes=nodes)
    return Predicted(cluster, changed, lambda node: changed_pods(node, change, cluster))


def read_audited(target: Scenario, flags: dict[str, Any], home: str = "") -> tuple[Cluster, Run]:
    """Read the input and audit it with the thresholds that are set by default."""
    chosen = _without_labels(flags, home)
    cluster, rules = read(chosen)
    with ProgressLine("predicting") as progress:
        found = run(cluster, rules, target, Thresholds(), None, progress)
    for what in found.audit.coverage.unmatched:
        say(f"check what was said: {visible(what)}")
    return cluster, found


def _without_labels(flags: dict[str, Any], home: str = "") -> options.Source:
    chosen = options.source(flags)._replace(home=home)
    if chosen.selector:
        raise UsageError(
            "-l chooses the pods that an audit reports, not nodes, and would change nothing here; leave it out"
        )
    return chosen


def collect(chosen: options.Source, progress: Progress, *, measured: bool = True, only: Only | None = None) -> Cluster:
    """Read the files or the cluster; without `measured` only what an audit needs that asks no kubelet."""
    measured = measured or chosen.kubelet is not None
    folder = _folder(chosen)
    if folder:
        from kubectl_cgaudit.collect.kubelet_files import saved_in

        # That there is none is said before a large cluster is read.
        saved_in(folder)
    selects, words = _selection(chosen)
    if chosen.files:
        from kubectl_cgaudit.collect import files

        return _with_saved(files.read(chosen.files, selects, words, progress, measured=measured), chosen)
    from kubectl_cgaudit.collect import live
    from kubectl_cgaudit.collect.kubeconfig import Connection

    connection = Connection(
        kubeconfig=chosen.kubeconfig,
        context=chosen.context,
        cluster=chosen.cluster,
        user=chosen.user,
        as_user=chosen.as_user,
        as_groups=chosen.as_groups,
        timeout_seconds=chosen.timeout_seconds,
        home=chosen.home,
    )
    asked = None
    if chosen.kubelet in ("proxy", "direct"):
        asked = live.Kubelets(chosen.kubelet == "direct", chosen.kubelet_insecure, chosen.timeout_seconds)
    cluster = live.read(connection, chosen.namespace, selects, words, progress, asked, measured=measured, only=only)
    return _with_saved(cluster, chosen)


def _folder(chosen: options.Source) -> str | None:
    """That of --kubelet=files:DIR."""
    said = chosen.kubelet or ""
    return said.removeprefix("files:") if said.startswith("files:") else None


def _with_saved(cluster: Cluster, chosen: options.Source) -> Cluster:
    folder = _folder(chosen)
    if not folder:
        return cluster
    from kubectl_cgaudit.collect import assemble, kubelet_files

    nodes = [node.name for node in cluster.nodes if node.kind == "linux"]
    known = cluster.kubelets or {}
    return assemble.with_answers(
        cluster, kubelet_files.from_files(folder, nodes, assemble.pods_by_node(cluster), known)
    )


def _selection(chosen: options.Source) -> tuple[Selects, str]:
    test = parse(chosen.selector) if chosen.selector else None
    wanted = chosen.namespace
    words = [f"namespace {wanted}"] if wanted else []
    words += [f"label {chosen.selector}"] if chosen.selector else []

    def selects(namespace: str, labels: dict[str, str]) -> bool:
        return (wanted is None or namespace == wanted) and (test is None or test(labels))

    return selects, ", ".join(words)
