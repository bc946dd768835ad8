"""A small simulated cluster, faults of its API server, and what an audit under them must be."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from msgspec import Struct, structs

from kubectl_cgaudit.audit import thresholds, unanswered
from kubectl_cgaudit.audit.model import Audit
from kubectl_cgaudit.audit.run import run
from kubectl_cgaudit.collect import kubelet, live, pages, patience
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.live import Kubelets
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.collect.pages import Page, Resource
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.detect import target as scenario
from kubectl_cgaudit.errors import CgauditError
from kubectl_cgaudit.report.findings import described
from tests.simulator import Cluster as Simulated
from tests.simulator import Fault, Simulator, Size, Store
from tests.simulator.faults import KINDS

CLUSTER = Simulated(Size(12, 230), seed=3)
PAGE_SIZES = {"Node": 5, "Pod": 46, "ReplicaSet": 12, "Job": 3, "Namespace": 3}
PAGES = ("first", "middle", "last")
LISTS = ("nodes", "pods", "replicasets", "jobs")
SECONDS = 1.0
SLOW = ("stall", "stall-body", "drip", "trickle")
TABLES = {
    "runtime_classes": "RuntimeClasses",
    "replicasets": "ReplicaSets",
    "jobs": "Jobs",
    "cgroup_v1_warnings": "Events",
}
_ANSWERED = ("cgroup_version", "config", "shares")
_LONG = 3600.0
_BROKE_OFF = re.compile(r"the list broke off after (\d+) (node|pod)s? \(.")
_ONCE = ("unauthorized", "gone", "gone-fresh")
_NEVER_PASS = ("forbidden", "vanish", "repeat")
"""A 403 is an answer; what is not there cannot be asked for again; a server that repeats a token would do it for ever."""


class Outcome(Struct, frozen=True):
    """What an audit came to: a cluster, or an error and its exit code."""

    cluster: Cluster | None = None
    error: str = ""
    code: int = 0


def fault(kind: str, resource: str, page: str, *, times: int = 1, status: int = 500) -> Fault:
    """A fault that lasts longer than the client waits, where it is one of time."""
    seconds = _LONG if kind in SLOW else 0.0
    return Fault(kind, resource, page, times=times, seconds=seconds, status=status)


def alone(kind: str, lists: Sequence[str] = LISTS, places: Sequence[str] = PAGES) -> list[Fault]:
    """A kind at some pages of some lists, once and for ever."""
    return [fault(kind, resource, page, times=times) for resource in lists for page in places for times in (1, 0)]


def bursts() -> list[Fault]:
    """Errors in a row: fewer than a client is patient, just as many, and more."""
    return [
        fault("error", resource, page, times=times, status=status)
        for resource in ("nodes", "pods")
        for page in PAGES
        for times in (2, 4, 5, 6)
        for status in (500, 503)
    ]


def chance(random: Random) -> list[Fault]:
    """A few faults together, passing and lasting."""
    resources = (*LISTS, "nodes", "pods", "pods", "runtimeclasses", "events", "namespaces", "*")
    return [
        fault(
            random.choice(list(KINDS)),
            random.choice(resources),
            random.choice((*PAGES, "any")),
            times=random.choice((1, 1, 1, 2, 3, 6, 0)),
            status=random.choice((500, 503)),
        )
        for _ in range(random.randint(2, 5))
    ]


class World:
    """A simulator that is asked again and again, each time with other faults."""

    def __init__(self, simulator: Simulator, config: Path) -> None:
        self.simulator = simulator
        self.config = simulator.kubeconfig(config, auth="file")
        self.right = self.ask([])

    def ask(self, faults: Sequence[Fault], kubelets: Kubelets | None = None) -> Outcome:
        """Read the cluster, and its kubelets if told to, while these faults happen."""
        self.simulator.faults.clear()
        self.simulator.faults.add(*faults)
        connection = Connection(kubeconfig=str(self.config), timeout_seconds=SECONDS)
        try:
            return Outcome(live.read(connection, None, lambda _namespace, _labels: True, "", silent, kubelets))
        except CgauditError as error:
            return Outcome(error=str(error), code=error.exit_code)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """The world in this folder, with short pages and no pauses."""
    sleep, whole, busy = patience.sleep, live.pages, kubelet._BUSY_PAUSE

    def short(api: Api, resource: Resource, size: int) -> Iterator[Page]:
        return pages.pages(api, resource, PAGE_SIZES.get(resource.kind, size))

    patience.sleep = lambda _seconds: None
    live.pages, kubelet._BUSY_PAUSE = short, 0.0
    store = Store(CLUSTER, folder / "store")
    try:
        with Simulator(CLUSTER, token="secret", tls=True, store=store) as simulator:  # noqa: S106
            yield World(simulator, folder / "config")
    finally:
        store.close()
        patience.sleep, live.pages, kubelet._BUSY_PAUSE = sleep, whole, busy


def wrong(right: Outcome, came: Outcome, faults: Sequence[Fault]) -> str:
    """What is wrong with an outcome under these faults; empty if it is right."""
    true, cluster = right.cluster, came.cluster
    if true is None:
        return f"the undisturbed cluster cannot be read: {right.error}"
    if cluster is None:
        return _wrong_error(came, faults)
    short = _short(true, cluster, faults)
    if short:
        return short
    gaps = cluster.reading.gaps
    if passes(faults) and (gaps or structs.replace(cluster, reading=true.reading) != true):
        return f"a fault that passes left its mark: {gaps}"
    for gap in gaps:
        said = _BROKE_OFF.match(gap.why)
        read = len(cluster.nodes if gap.what == "nodes" else cluster.pods)
        # A page that came twice is counted twice.
        if said and gap.what in ("nodes", "pods") and not _doubles(faults) and int(said[1]) != read:
            return f"{read} were read and the gap says: {gap.why}"
        if not gap.what.startswith(("nodes", "pods")) or not gap.remedy:
            return f"a gap that names no list: {gap}"
    return _wrong_verdict(cluster) if gaps else ""


def passes(faults: Sequence[Fault]) -> bool:
    """Whether a single fault must leave no trace: what it spoils may be asked for again."""
    if len(faults) != 1 or faults[0].kind in _NEVER_PASS:
        return False
    (only,) = faults
    if only.kind in ("unauthorized", "expire") and (only.resource, only.page) == ("nodes", "first"):
        return False  # Nothing has yet shown that the credentials were ever good.
    if only.kind in ("gone", "gone-fresh") and only.page == "first":
        return False  # A list that cannot even begin is refused, not expired.
    most = 1 if only.kind in (*SLOW, *_ONCE) else 4
    return only.kind == "duplicate" or 0 < only.times <= most


def wrong_answers(right: Outcome, came: Outcome) -> str:
    """What is wrong with the kubelets' part of an outcome under faults of theirs only; empty if it is right."""
    true, cluster = right.cluster, came.cluster
    if true is None or cluster is None:
        return came.error or right.error
    told = unanswered_nodes(cluster)
    for name, whole in (true.kubelets or {}).items():
        found = (cluster.kubelets or {})[name]
        if found != whole and not (found.problems and name in told):
            return f"the kubelet of {name} says less, and that is not said"
        if any(getattr(found, part) and getattr(found, part) != getattr(whole, part) for part in _ANSWERED):
            return f"the kubelet of {name} says something else"
    return "" if structs.replace(cluster, kubelets=true.kubelets, reading=true.reading) == true else "another cluster"


def unanswered_nodes(cluster: Cluster) -> list[str]:
    """The nodes whose kubelets the audit's coverage says did not answer."""
    gaps = _audited(cluster).coverage.gaps
    return [node for gap in gaps if gap.kind == unanswered.KIND for node in gap.members]


def _wrong_error(came: Outcome, faults: Sequence[Fault]) -> str:
    if passes(faults):
        return f"a fault that passes ended the audit: {came.error}"
    if came.code != 1 or not came.error.strip() or "\n" in came.error or "; " not in came.error:
        return f"no sentence that says what to do next: {came.code} {came.error!r}"
    return ""


def _short(true: Cluster, cluster: Cluster, faults: Sequence[Fault]) -> str:
    """What is missing, or not as it is in the cluster, without a word."""
    said = [gap.what for gap in cluster.reading.gaps]
    nodes = {each.name: each for each in true.nodes}
    pods = {(each.namespace, each.name): each for each in true.pods}
    if any(nodes.get(each.name) != each for each in cluster.nodes):
        return "a node that is not so in the cluster"
    if any(pods.get((each.namespace, each.name)) != each for each in cluster.pods):
        return "a pod that is not so in the cluster"
    for name, read, there in (("nodes", cluster.nodes, true.nodes), ("pods", cluster.pods, true.pods)):
        told = any(what.startswith(name) for what in said)
        if len(read) < len(there) and not told and not _unseen(name, faults):
            return f"{len(there) - len(read)} {name} are missing in silence"
    for table, word in TABLES.items():
        read, there = getattr(cluster, table), getattr(true, table)
        if read is None and not any(note.startswith(word) for note in cluster.reading.notes):
            return f"{word} are missing in silence"
        if read is not None and read != there and not _unseen(table, faults):
            return f"{word} are not what they are in the cluster"
    return ""


def _unseen(name: str, faults: Sequence[Fault]) -> bool:
    """Objects that were deleted before a list was counted are not there: nobody can miss them.

    A list is counted with its first page; so nothing can be missed of one that has a single page, as those of the pods
    of a namespace have, nor of Events, which are selected and so not counted.
    """
    listed = "events" if name == "cgroup_v1_warnings" else name.replace("_", "")
    apart = any(each.kind == "forbidden" and each.resource in ("*", "pods") for each in faults)
    single = listed in ("runtimeclasses", "events") or (listed == "pods" and apart)
    lists = ("*", listed, "namespaces") if listed == "pods" and apart else ("*", listed)
    gone = [each for each in faults if each.kind == "vanish" and each.resource in lists]
    return any(single or each.page in ("first", "any") for each in gone)


def _doubles(faults: Sequence[Fault]) -> bool:
    return any(each.kind in ("duplicate", "repeat") for each in faults)


def _wrong_verdict(cluster: Cluster) -> str:
    result = _audited(cluster)
    if result.coverage.complete:
        return "gaps, and the audit says that it is complete"
    if "ot everything could be read" not in result.verdict.sentence:
        return f"gaps, and the verdict is {result.verdict.sentence!r}"
    if sum(finding.rule == "CGA001" for finding in result.findings) < len(cluster.reading.gaps):
        return "a gap without a finding"
    return ""


def _audited(cluster: Cluster) -> Audit:
    return described(run(cluster, (), scenario.parse("v2+runtime"), thresholds.parse(()), None).audit)


def shown(faults: Sequence[Fault]) -> str:
    """The faults in a line."""
    return ", ".join(f"{each.kind} {each.resource}/{each.page} x{each.times or 'always'}" for each in faults)
