"""What is open about the nodes, what hangs on it, and how to find out: one entry for each question and group of alike nodes."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile

from msgspec import Struct

from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect.catalogue import commands
from kubectl_cgaudit.detect.runtime import named_by
from kubectl_cgaudit.detect.state import Question
from kubectl_cgaudit.judge.audit import Change, Settle, SettleCommand
from kubectl_cgaudit.judge.compare import Case, Comparison
from kubectl_cgaudit.judge.rounding import relative, shown

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


def differing(comparison: Comparison, by_case: Sequence[object]) -> set[str]:
    """Return the questions whose answer decides what is given for each case: two cases differ in it, and in nothing else."""
    if all(each == by_case[0] for each in by_case):
        return set()
    places = {id(case): place for place, case in enumerate(comparison.cases)}
    return {
        question.about
        for question in comparison.questions
        for one, other in _pairs(comparison, question.about)
        if by_case[places[id(one)]] != by_case[places[id(other)]]
    }


class _Look(Struct, frozen=True):
    """A command that answers a question on the node itself."""

    command: str
    shows: str


_LOOKS = {
    "cgroup": _Look("stat -fc %T /sys/fs/cgroup", "cgroup2fs is v2, tmpfs is v1"),
    "reserve": _Look("cat /sys/fs/cgroup/system.slice/cpu.weight", "100 is the default; a reserve of 500m is 20"),
    "burstable": _Look(
        "cat /sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/cpu.weight",
        "it is that of one of the two cases of `kubectl cgaudit tree`",
    ),
    "set_by": _Look(
        "systemctl cat system.slice", "CPUWeight= or CPUShares= below /etc or /usr is systemd's, below /run a kubelet's"
    ),
}


class _Group(Struct, frozen=True):
    """Alike nodes, and a question about them."""

    about: str
    question: Question
    comparisons: list[Comparison]
    answer: str
    """The probable one; empty where nothing is probable."""


def settle(comparisons: Sequence[Comparison]) -> tuple[Settle, ...]:
    """Return what would answer the open questions, those first that decide the greatest loss."""
    found = [_settle(group, comparisons) for group in _groups(comparisons)]
    return tuple(sorted(found, key=_worst_first))


def _worst_first(entry: Settle) -> tuple[float, bool, str, tuple[str, ...]]:
    loss = entry.decides.change if entry.decides else 0.0
    return loss, entry.confidence == "probable", entry.about, entry.nodes


def _groups(comparisons: Sequence[Comparison]) -> list[_Group]:
    groups: dict[object, _Group] = {}
    for comparison in comparisons:
        for question in comparison.questions:
            for about, confidence in _abouts(question):
                answer = _answer(comparison, about) if confidence == "probable" else ""
                node, hints = comparison.node, comparison.state.hints([about.removeprefix("runtime:")])
                face = about, confidence, answer, hints, node.os_image, node.runtime_version, node.kubelet_version
                group = groups.setdefault(face, _Group(about, _with(question, confidence), [], answer))
                group.comparisons.append(comparison)
    return list(groups.values())


def _abouts(question: Question) -> Iterator[tuple[str, str]]:
    """Yield the subjects of a question about the state of a node; what a target leaves open is the user's to say."""
    if question.about == "runtime":
        yield from ((f"runtime:{handler}", confidence) for handler, confidence in question.handlers)
    elif question.about in _LOOKS:
        yield question.about, question.confidence


def _with(question: Question, confidence: str) -> Question:
    return Question(question.about, "probable" if confidence == "probable" else "unknown")


def _answer(comparison: Comparison, about: str) -> str:
    """Return the probable answer, as a states file says it."""
    first = comparison.cases[0].now
    if about == "cgroup":
        return f"cgroup: {first.cgroup}"
    if about == "reserve":
        return f"system_slice: {first.system_slice}, set_by: kubelet"
    if about == "burstable":
        return f"kubelet: {'openshift' if first.partitioned else 'upstream'}"
    handler = about.removeprefix("runtime:")
    return f"runtimes: {{{handler}: {first.runtime(handler).formula}}}"


def _settle(group: _Group, every: Sequence[Comparison]) -> Settle:
    node = group.comparisons[0].node
    losses = [loss for each in group.comparisons if (loss := _decides(each, group.question.about))]
    said = group.answer or _unsaid(group.about)
    rule = "".join([_match(group, every), said])
    return Settle(
        about=group.about,
        confidence=group.question.confidence,
        nodes=tuple(each.node.name for each in group.comparisons),
        decides=min(losses, key=lambda loss: (loss.change, loss.pod), default=None),
        commands=tuple(_commands(group, node)),
        states=f"- {{{rule}}}",
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
        yield SettleCommand(_DEBUG.format(node=node.name, look=look.command), _NEEDS_DEBUG, look.shows)
    if not all(map(_was_asked, group.comparisons)):
        yield _KUBELETS


def _program(about: str) -> str:
    named = named_by(about.removeprefix("runtime:"))
    return named if named in ("crun", "youki") else "runc"


def _was_asked(comparison: Comparison) -> bool:
    return any(piece.source.startswith("kubelet /") for piece in comparison.state.evidence)


def _match(group: _Group, every: Sequence[Comparison]) -> str:
    """Return the `match:` of a rule for these nodes: none where it may stand for all, else their label or name.

    A node that is not of the group may be matched where the same answer holds for it. Without an answer none is.
    """
    names = {each.node.name for each in group.comparisons}
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


def _answers(comparison: Comparison, about: str, answer: str, names: set[str]) -> bool:
    if comparison.node.name in names:
        return True
    known = comparison.state.basis_of(about).confidence != "unknown"
    asked = not about.startswith("runtime:") or about.removeprefix("runtime:") in comparison.handlers
    return known and asked and about != "reserve" and _answer(comparison, about) == answer


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


def _decides(comparison: Comparison, about: str) -> Change | None:
    """Return the greatest loss that one answer to a question makes on this node, and another answer does not."""
    pairs = list(_pairs(comparison, about))
    seen: dict[tuple[int, str], int] = {}
    for index, (pod, used) in enumerate(comparison.placed):
        if pod.selected:
            seen.setdefault((comparison.outlines[index], used), index)
    found = []
    for index in seen.values():
        changes = {id(case): list(_changes(comparison, case, index)) for case in comparison.cases}
        for one, other in pairs:
            for loss, elsewhere in zip(changes[id(one)], changes[id(other)], strict=True):
                if loss.change < 0 and loss.change < elsewhere.change:
                    found.append(loss)
    return min(found, key=lambda loss: (loss.change, loss.pod, loss.when), default=None)


def _pairs(comparison: Comparison, about: str) -> Iterator[tuple[Case, Case]]:
    """Yield the cases that differ in the answer to one question only, each pair both ways."""
    by_rest: dict[object, list[Case]] = {}
    for case in comparison.cases:
        rest = tuple((question.about, place) for question, place in case.answers if question.about != about)
        by_rest.setdefault(rest, []).append(case)
    for cases in by_rest.values():
        yield from ((one, other) for one in cases for other in cases if one is not other)


def _changes(comparison: Comparison, case: Case, index: int) -> Iterator[Change]:
    """Yield the change of a pod against the system, then of each container's part of it, as they are shown."""
    pod, node = comparison.placed[index][0], comparison.node.name
    outline = comparison.outlines[index]
    was, will = case.before.pods.shapes[outline], case.after.pods.shapes[outline]
    before = case.before.pods.share(was) / case.before.system_share
    after = 0.0 if case.lost else case.after.pods.share(will) / case.after.system_share
    yield _change(pod.name, None, node, case.when, before, after)
    for container, one, other in zip(pod.present, was.part, will.part, strict=True):
        yield _change(pod.name, container.name, node, case.when, one or 0.0, 0.0 if case.lost else other or 0.0)


def _change(pod: str, container: str | None, node: str, when: str, before: float, after: float) -> Change:
    ends = shown(before), shown(after)
    return Change(pod, container, node, when, *ends, relative(*ends) or 0.0)
