"""What is open about nodes, what hangs on it, and how to find out: a record for each question and group of alike nodes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from shlex import quote

from msgspec import Struct
from polars import col

from kubectl_cgaudit.audit.cases import NodeCases
from kubectl_cgaudit.audit.inputs import Tables
from kubectl_cgaudit.audit.judge import Judged
from kubectl_cgaudit.audit.model import Change, Confidence, SettleCommand
from kubectl_cgaudit.audit.model import Question as Question
from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect import state
from kubectl_cgaudit.detect.catalogue import commands
from kubectl_cgaudit.detect.runtime import named_by

_ON_NODE = "a login on the node"
_DEBUG = "kubectl debug node/{node} -it --profile=sysadmin --image=busybox -- chroot /host {look}"
_NEEDS_DEBUG = "create on pods: it starts a privileged pod on the node; delete it afterwards"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,60}", re.ASCII)
"""A value that YAML takes for a string as it is, but for the few words it has."""
_KUBELETS = SettleCommand(
    "kubectl cgaudit --kubelet=proxy",
    "nodes/proxy, which also allows running commands in every container of the node",
    "measured; inside the cluster --kubelet=direct needs nodes/metrics and nodes/configz only",
)


class _Look(Struct, frozen=True):
    """A command that answers a question on the node itself."""

    command: str
    shows: str


_LOOKS = {
    "cgroup": _Look("stat -fc %T /sys/fs/cgroup", "cgroup2fs is v2, tmpfs is v1"),
    "reserve": _Look("cat /sys/fs/cgroup/system.slice/cpu.weight", "100 is the default; a reserve of 500m is 20"),
    "burstable": _Look(
        "cat /sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/cpu.weight",
        "it is the value of one of the two cases of `kubectl cgaudit tree`",
    ),
    "set_by": _Look(
        "systemctl cat system.slice", "CPUWeight= or CPUShares= below /etc or /usr is systemd's, below /run a kubelet's"
    ),
}


class _Group(Struct, frozen=True):
    """Nodes that are alike, and a question about them."""

    about: str
    question: str
    """What the question is about; of single handlers `runtime`."""
    confidence: Confidence
    nodes: list[NodeCases]
    answer: str
    """The probable one; empty where nothing is probable."""


def questions(tables: Tables, judged: Judged) -> tuple[Question, ...]:
    """Return what is open, and how to settle it, those first that decide the greatest loss."""
    losses: dict[tuple[str, str], Change] = {}
    for row in judged.questions.filter(col.change.is_not_null()).iter_rows(named=True):
        node, pod = tables.nodes[row["node"]], tables.pods[row["row"]]
        container = None if row["container"] is None else tables.container_name(row["container"])
        when = node.cases[row["case"]].when
        change = Change(pod.name, node.node.name, container, when, row["before"], row["after"], row["change"])
        losses[node.node.name, node.questions[row["question"]].about] = change
    return tuple(sorted((_settle(group, tables.nodes, losses) for group in _groups(tables.nodes)), key=_worst_first))


def _worst_first(question: Question) -> tuple[float, bool, str, tuple[str, ...]]:
    loss = question.decides.change if question.decides else 0.0
    return loss, question.confidence == "probable", question.about, question.nodes


def _groups(nodes: Sequence[NodeCases]) -> list[_Group]:
    groups: dict[object, _Group] = {}
    for node in nodes:
        for question in node.questions:
            for about, confidence in _abouts(question):
                answer = _answer(node, about) if confidence == "probable" else ""
                hints, own = node.state.hints([about.removeprefix("runtime:")]), node.node
                alike = about, confidence, answer, hints, own.os_image, own.runtime_version, own.kubelet_version
                group = groups.setdefault(alike, _Group(about, question.about, _open(confidence), [], answer))
                group.nodes.append(node)
    return list(groups.values())


def _abouts(question: state.Question) -> Iterator[tuple[str, str]]:
    """Yield the subjects of a question about the state of a node; what a target leaves open is the user's to say."""
    if question.about == "runtime":
        yield from ((f"runtime:{handler}", confidence) for handler, confidence in question.handlers)
    elif question.about in _LOOKS:
        yield question.about, question.confidence


def _open(confidence: str) -> Confidence:
    return "probable" if confidence == "probable" else "unknown"


def _answer(node: NodeCases, about: str) -> str:
    """Return the probable answer, as a states file says it."""
    first = node.cases[0].before
    if about == "cgroup":
        return f"cgroup: {first.cgroup}"
    if about == "reserve":
        return f"system_slice: {first.system_slice}, set_by: kubelet"
    if about == "burstable":
        return f"kubelet: {'openshift' if first.partitioned else 'upstream'}"
    handler = about.removeprefix("runtime:")
    return f"runtimes: {{{handler}: {first.runtime(handler).formula}}}"


def _settle(group: _Group, every: Sequence[NodeCases], losses: Mapping[tuple[str, str], Change]) -> Question:
    node = group.nodes[0].node
    names = tuple(each.node.name for each in group.nodes)
    decided = [losses[name, group.question] for name in names if (name, group.question) in losses]
    return Question(
        about=group.about,
        confidence=group.confidence,
        answer=group.answer,
        nodes=names,
        decides=min(decided, key=lambda loss: (loss.change, loss.pod), default=None),
        commands=tuple(_commands(group, node)),
        states=f"- {{{_match(group, every)}{group.answer or _unsaid(group.about)}}}",
    )


def _unsaid(about: str) -> str:
    if about == "cgroup":
        return "cgroup: v1 or v2"
    if about == "set_by":
        return "set_by: systemd or kubelet"
    handler = about.removeprefix("runtime:")
    return f"runtimes: {{{handler}: {named_by(handler) or 'runc'} X.Y.Z}}"


def _commands(group: _Group, node: Node) -> Iterator[SettleCommand]:
    """Yield the ways to answer a question, the cheapest first: the platform's own, a look on one node, every kubelet."""
    for row in commands(node, group.about):
        yield SettleCommand(row.command.replace("NODE", node.name), row.needs, row.shows)
    look = _LOOKS.get(group.about) or _Look(
        f"{_program(group.about)} --version",
        "linear up to runc 1.3.1 and crun 1.22, quadratic from runc 1.3.2 and crun 1.23 on",
    )
    if not any(row.instead for row in commands(node, group.about)):
        yield SettleCommand(look.command, _ON_NODE, look.shows)
        yield SettleCommand(_DEBUG.format(node=quote(node.name), look=look.command), _NEEDS_DEBUG, look.shows)
    if not all(map(_was_asked, group.nodes)):
        yield _KUBELETS


def _program(about: str) -> str:
    named = named_by(about.removeprefix("runtime:"))
    return named if named in ("crun", "youki") else "runc"


def _was_asked(node: NodeCases) -> bool:
    return any(piece.source.startswith("kubelet /") for piece in node.state.evidence)


def _match(group: _Group, every: Sequence[NodeCases]) -> str:
    """Return the `match:` of a rule for these nodes: none where it may stand for all, else their label or name.

    A node that is not of the group may be matched where the same answer holds for it. Without an answer none is.
    """
    names = {each.node.name for each in group.nodes}
    fits = names | {
        each.node.name for each in every if group.answer and _answers(each, group.about, group.answer, names)
    }
    nodes = [each.node for each in every]
    if len(fits) == len(nodes):
        return ""
    shared = _shared_label(nodes, names, fits)
    if len(names) > 1 and shared:
        return f"match: {{labels: {{{shared[0]}: {shared[1]}}}}}, "
    glob = _glob(names)
    if len(names) > 1 and all(node.name in fits for node in nodes if fnmatchcase(node.name, glob)):
        return f"match: {{name: {glob}}}, "
    return f"match: {{name: {min(names)}}}, "


def _answers(node: NodeCases, about: str, answer: str, names: set[str]) -> bool:
    if node.node.name in names:
        return True
    known = node.state.basis_of(about).confidence != "unknown"
    asked = not about.startswith("runtime:") or about.removeprefix("runtime:") in node.handlers
    return known and asked and about != "reserve" and _answer(node, about) == answer


def _shared_label(nodes: Sequence[Node], names: set[str], fits: set[str]) -> tuple[str, str] | None:
    """Return the first label that all of these nodes have, and no node for which the answer is another one."""
    inside = [node for node in nodes if node.name in names]
    outside = [node for node in nodes if node.name not in fits]
    for label, value in sorted(inside[0].labels.items()):
        shared = all(node.labels.get(label) == value for node in inside)
        if shared and _PLAIN.fullmatch(value) and all(node.labels.get(label) != value for node in outside):
            return label, value
    return None


def _glob(names: set[str]) -> str:
    letters = takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False))
    return "".join(column[0] for column in letters) + "*"
