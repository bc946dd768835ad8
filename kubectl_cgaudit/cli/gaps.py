"""What could not be read, said on stderr, and the exit code that follows from it."""

from collections.abc import Collection, Sequence

from kubectl_cgaudit.audit import unanswered
from kubectl_cgaudit.audit.cases import NodeCases
from kubectl_cgaudit.audit.coverage import cover
from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.codes import INCOMPLETE
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.errors import NotFoundError, UnreadError
from kubectl_cgaudit.report.escape import visible


def exit_code(cluster: Cluster, nodes: Sequence[NodeCases] = (), told: Collection[str] = ()) -> int:
    """3 if something could not be read, else 0. What it was is said on stderr, but for kubelets whose nodes were all `told`.

    `nodes` are for who shows shares: on some nodes they cannot be said.
    """
    coverage = cover(cluster, nodes=nodes)
    for gap in coverage.gaps:
        if gap.kind != unanswered.KIND or not set(gap.members) <= set(told):
            say(f"incomplete: {visible(gap.what)}: {visible(gap.why)}. {visible(gap.remedy)}.")
    return 0 if coverage.complete else INCOMPLETE


def after_gaps(error: NotFoundError, cluster: Cluster) -> NotFoundError:
    """The error. What could not be read is said before it, where that may be why."""
    if isinstance(error, UnreadError):
        exit_code(cluster)
    return error
