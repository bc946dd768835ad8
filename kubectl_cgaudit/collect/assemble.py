"""From decoded objects to a Cluster: whatever reads objects hands them here one at a time."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from kubectl_cgaudit.collect import reduce, unread, wire
from kubectl_cgaudit.collect.model import Cluster, Gap, KubeletAnswers, Node, Owner, Pod, Reading
from kubectl_cgaudit.collect.part import Part
from kubectl_cgaudit.collect.reduce import Selects
from kubectl_cgaudit.collect.unread import Decode, Unread
from kubectl_cgaudit.errors import InputError
from kubectl_cgaudit.same import Same
from kubectl_cgaudit.text import NAMED, counted, named

T = TypeVar("T")
_AT = re.compile(r" - at `\$\.?(.*)`$")


class Assembly:
    """Collects objects in any order. Bad ones are remembered, and refused together at the end, or left out by then."""

    def __init__(self, selects: Selects, filter_text: str, *, measured: bool = True) -> None:
        """`measured` keeps what only a kubelet's answers are compared with: uids, container ids and their times."""
        self._selects = selects
        self._measured = measured
        self._same = Same()
        self._filter = filter_text
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, dict[str, Pod]] = {}
        self._owners: dict[str, dict[tuple[str, str], Owner | None]] = {}
        self._runtime_classes: dict[str, str] | None = None
        self._cgroup_v1_warnings: dict[str, str] | None = None
        self._ignored: dict[str, int] = {}
        self._duplicates = 0
        self._bad: list[Unread] = []
        self._unlike: set[str] = set()
        """Objects that came more than once, and not alike."""
        self.parts: list[Part] = []
        """The lists of files."""
        self.gaps: list[Gap] = []
        self.notes: list[str] = []

    @property
    def has_nodes(self) -> bool:
        """Whether any Node has come."""
        return bool(self._nodes)

    def has_node(self, name: str) -> bool:
        """Whether the Node of this name has come."""
        return name in self._nodes

    @property
    def bad(self) -> int:
        """How many objects could not be decoded."""
        return len(self._bad)

    @property
    def first_bad(self) -> str:
        """The first of these, why it could not be decoded, and how many more there are."""
        first, others = self._bad[0], len(self._bad) - 1
        more = f" (and {counted(others, 'more object')} like it)" if others else ""
        return f"{first.source}: {first.kind} {first.title}: {first.why}{more}"

    def leave_out_bad(self, instead: Mapping[str, str]) -> None:
        """Make gaps of the objects that could not be decoded; `instead` says of a kind how one does without."""
        self.gaps += unread.gaps(self._bad, instead)
        self._bad.clear()

    def name_unlike(self, why: str, remedy: str) -> None:
        """Make a gap of the objects that came more than once, and not alike."""
        unlike = sorted(self._unlike)
        if unlike:
            what = unlike[0] if len(unlike) == 1 else f"{len(unlike)} objects ({named(unlike, NAMED)})"
            self.gaps.append(Gap(what, why, remedy, "object that is not alike", tuple(unlike)))

    def expect(self, kind: str) -> None:
        """Say that a table was read, even if nothing is in it."""
        if kind == "RuntimeClass":
            self._runtime_classes = self._runtime_classes or {}
        elif kind == "Event":
            self._cgroup_v1_warnings = self._cgroup_v1_warnings or {}
        else:
            self._owners.setdefault(kind, {})

    def forget(self, kind: str, namespace: str | None = None) -> None:
        """Drop what came of a kind, for its list starts again or broke off; of one namespace if it is named."""
        self._bad = [each for each in self._bad if each.kind != kind or namespace not in (None, each.namespace)]
        titles = _title(kind, namespace, "")
        self._unlike = {each for each in self._unlike if not each.startswith(titles)}
        if kind == "Node":
            self._nodes.clear()
        elif kind == "Pod":
            for name in [*self._pods] if namespace is None else [namespace]:
                self._pods.pop(name, None)
        elif kind == "RuntimeClass":
            self._runtime_classes = None
        elif kind == "Event":
            self._cgroup_v1_warnings = None
        else:
            self._owners.pop(kind, None)

    def add(self, kind: str, raw: Any, decode: Decode, source: str) -> None:
        """Decode one object of `kind` and keep what matters of it."""
        try:
            if kind == "Node":
                node = reduce.node(decode(raw, wire.Node), self._same)
                self._once(kind, None, self._nodes, node.name, node)
            elif kind == "Pod":
                pod = reduce.pod(decode(raw, wire.Pod), self._selects, self._same, measured=self._measured)
                self._once(kind, pod.namespace, self._pods.setdefault(pod.namespace, {}), pod.name, pod)
            elif kind in ("ReplicaSet", "Job"):
                self.expect(kind)
                key, owner = reduce.owner(decode(raw, wire.Owned), self._same)
                self._owners[kind][key] = owner
            elif kind == "RuntimeClass":
                self.expect(kind)
                runtime_class = decode(raw, wire.RuntimeClass)
                if self._runtime_classes is not None:
                    self._runtime_classes[runtime_class.metadata.name] = runtime_class.handler
            elif kind == "Event":
                self._add_event(decode(raw, wire.Event))
            else:
                self._ignored[kind] = self._ignored.get(kind, 0) + 1
        except (InputError, *wire.UNDECODABLE) as error:
            self._bad.append(unread.of(kind, raw, decode, _in_words(error), source))

    def _add_event(self, event: wire.Event) -> None:
        self.expect("Event")
        warned = reduce.warned_of_v1(event)
        if warned and self._cgroup_v1_warnings is not None:
            node, when = warned
            self._cgroup_v1_warnings[node] = max(when, self._cgroup_v1_warnings.get(node, ""))
        else:
            self._ignored["Event"] = self._ignored.get("Event", 0) + 1

    def _once(self, kind: str, namespace: str | None, table: dict[str, T], name: str, value: T) -> None:
        if not name:
            raise InputError(f"a {kind} without metadata.name")
        if name in table:
            self._duplicates += 1
            if table[name] != value:
                self._unlike.add(_title(kind, namespace, name))
        table.setdefault(name, value)

    def aside(self) -> "Assembly":
        """Another, for what comes at the same time."""
        other = Assembly(self._selects, self._filter, measured=self._measured)
        other._same = self._same
        return other

    def join(self, other: "Assembly") -> None:
        """Take in the tables that came aside, after all that has come here."""
        self._owners.update(other._owners)
        self._runtime_classes = other._runtime_classes
        self._cgroup_v1_warnings = other._cgroup_v1_warnings
        self._ignored.update(other._ignored)
        self._bad += other._bad
        self.notes += other.notes

    def cluster(self, source: str, named: Mapping[str, str] | None = None) -> Cluster:
        """Everything read; `named` is what a running cluster is called.

        Raises InputError that names the first bad object and counts the others.
        """
        if self._bad:
            raise InputError(
                f"{self.first_bad}; correct the input, save it again with kubectl, or audit the running cluster, "
                "where one bad object is left out"
            )
        return Cluster(
            nodes=tuple(self._nodes[name] for name in sorted(self._nodes)),
            pods=tuple(self._pods[space][name] for space in sorted(self._pods) for name in sorted(self._pods[space])),
            replicasets=self._owners.get("ReplicaSet"),
            jobs=self._owners.get("Job"),
            runtime_classes=self._runtime_classes,
            cgroup_v1_warnings=self._cgroup_v1_warnings,
            kubelets=None,
            reading=Reading(
                source=source,
                gaps=tuple(sorted(self.gaps)),
                notes=tuple(self.notes),
                ignored=dict(sorted(self._ignored.items())),
                duplicates=self._duplicates,
                filter=self._filter,
                named=dict(named or {}),
            ),
        )


def pods_by_node(cluster: Cluster) -> dict[str, set[tuple[str, str]]]:
    """Namespace and name of the active pods of each node."""
    found: dict[str, set[tuple[str, str]]] = {}
    for pod in cluster.pods:
        if pod.node and not pod.finished:
            found.setdefault(pod.node, set()).add((pod.namespace, pod.name))
    return found


def with_answers(cluster: Cluster, answers: dict[str, KubeletAnswers]) -> Cluster:
    """The cluster with what its kubelets answered now, in place of what a snapshot has of them."""
    return msgspec.structs.replace(cluster, kubelets={**(cluster.kubelets or {}), **answers})


def _title(kind: str, namespace: str | None, name: str) -> str:
    return f"{kind.lower()} {name}" if namespace is None else f"{kind.lower()} {namespace}/{name}"


def _in_words(error: Exception) -> str:
    text = str(error)
    found = _AT.search(text)
    return f"{found[1]}: {text[: found.start()].lower()}" if found else text
