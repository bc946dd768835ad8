"""The comparison in one sentence, and what to know before believing it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import NodeRecord
from kubectl_cgaudit.compare.diff.types import NOT_PREDICTED, OUTCOMES, Diff, Outcome, Summary, contradicted
from kubectl_cgaudit.text import counted, named

NOTHING = Summary("", moved=False, nodes={}, workloads={}, notes=())
_NAMED = 5
# Where evidence was seen, which differs from node to node: (the kubelet warned of cgroup v1 at 2026-11-20T23:26:22Z).
_SAW = re.compile(r" \((?:[^()]|\([^()]*\))*\)")
_SAID: dict[Outcome, str] = {
    "unpredicted": "moved, though no change was predicted",
    "otherwise": "moved otherwise than predicted",
    "as-before": "still as before, though a change was predicted",
    "unknown": "cannot be said",
    "came-true": "changed as predicted",
    "other-cause": "other than predicted for another reason",
    "unchanged": "as before, as predicted",
}
"""In the order of the sentence."""


class Doubts(Struct, frozen=True):
    """Nodes of which something cannot be said, by what it is."""

    ambiguous: Sequence[str]
    """New, in the place of gone ones of which different things were predicted."""
    baseless: Sequence[str]
    """What stands beside pods at the root is said of one moment only."""
    unseen: Sequence[str]
    """Something may compete with pods that is not counted."""
    rounded: Sequence[str]
    """How quotas are rounded is taken for granted."""
    overridden: Sequence[str]
    """A default was taken before and is contradicted now, with what it was."""


def concluded(
    diff: Diff,
    before: Sequence[NodeRecord],
    after: Sequence[NodeRecord],
    doubts: Doubts,
) -> Diff:
    """The comparison with its summary."""
    nodes, workloads = _counts(each.outcome for each in diff.nodes), _counts(each.outcome for each in diff.workloads)
    moved = any(nodes[outcome] or workloads[outcome] for outcome in NOT_PREDICTED)
    notes = (
        *_of_the_sides(diff),
        *_contradictions("Before", before),
        *_contradictions("Now", after),
        *_of_the_nodes(before, after, doubts, came_true=bool(nodes["came-true"] + workloads["came-true"])),
    )
    against = any(node.contradictions for node in (*before, *after))
    sentence = " ".join(_sentences(diff, nodes, workloads, moved=moved, against=against))
    return replace(diff, summary=Summary(sentence, moved, nodes, workloads, notes))


def _counts(outcomes: Iterable[Outcome]) -> dict[str, int]:
    found = Counter(outcomes)
    return {outcome: found[outcome] for outcome in OUTCOMES}


def _sentences(
    diff: Diff, nodes: dict[str, int], workloads: dict[str, int], *, moved: bool, against: bool
) -> Iterator[str]:
    for what, counts in (("workload", workloads), ("node", nodes)):
        total = sum(counts.values())
        parts = [f"{counts[outcome]} {words}" for outcome, words in _SAID.items() if counts[outcome]]
        yield f"Of {counted(total, what)} in both: {'; '.join(parts)}." if parts else f"No {what} is in both."
    if not moved:
        whole = diff.before.complete and diff.after.complete
        compared = diff.nodes or diff.workloads
        doubt = against or workloads["unknown"] or nodes["unknown"] or not whole or not compared
        yield f"Nothing {'is known to have ' if doubt else ''}moved that nobody predicted."
    lone = (
        ("workload", diff.new_workloads, "new"),
        ("workload", diff.gone_workloads, "gone"),
        ("node", diff.new_nodes, "new"),
        ("node", diff.gone_nodes, "gone"),
    )
    said = [_lone(what, len(each), word, sure=all(one.sure for one in each)) for what, each, word in lone if each]
    if said:
        yield f"{', '.join(said)}."


def _lone(what: str, amount: int, word: str, *, sure: bool) -> str:
    verb = ("is" if amount == 1 else "are") if sure else "may be"
    return f"{counted(amount, what)} {verb} {word}"


def _of_the_sides(diff: Diff) -> Iterator[str]:
    for name, side in (("before", diff.before), ("after", diff.after)):
        if not side.complete:
            yield f"The audit {name} is incomplete: {named(side.gaps, _NAMED)}. What is missing there is not compared."
    sure = [each.sure for each in (*diff.new_workloads, *diff.gone_workloads)]
    sure += [each.sure for each in (*diff.new_nodes, *diff.gone_nodes)]
    if not all(sure):
        whole = diff.before.complete and diff.after.complete
        why = "As pods wait for a node, or owners were read of one moment only," if whole else "Because of that"
        yield f"{why} it cannot be said whether all that is shown as new or gone really is."
    if not diff.nodes and not diff.workloads:
        yield "No node and no workload is in both: these are two clusters, or nothing of the first is left."


def _contradictions(when: str, nodes: Sequence[NodeRecord]) -> Iterator[str]:
    """What the evidence says against what was said, once for all nodes with the same; where it was seen, if that is one place."""
    found: dict[str, list[tuple[str, str]]] = {}
    for node in nodes:
        for words in node.contradictions:
            found.setdefault(_SAW.sub("", words), []).append((node.name, words))
    for alike, said in found.items():
        names, seen = (dict.fromkeys(each) for each in zip(*said, strict=True))
        yield f"{when}, {contradicted(named(names, _NAMED))}{alike if len(seen) > 1 else next(iter(seen))}."


def _of_the_nodes(
    before: Sequence[NodeRecord],
    after: Sequence[NodeRecord],
    doubts: Doubts,
    *,
    came_true: bool,
) -> Iterator[str]:
    was_unknown = [node.name for node in before if node.confidence == "unknown"]
    if was_unknown:
        yield f"What ran before on {named(was_unknown, _NAMED)} is not known, so what depends on it cannot be said."
    unknown = [node.name for node in after if node.confidence == "unknown"]
    if unknown:
        yield (
            f"What runs now on {named(unknown, _NAMED)} is not known, so what depends on it cannot be said: "
            "`kubectl cgaudit nodes` says what would settle it."
        )
    baseless, unseen, rounded, ambiguous = (
        named(names, _NAMED) for names in (doubts.baseless, doubts.unseen, doubts.rounded, doubts.ambiguous)
    )
    if doubts.overridden:
        yield (
            f"The first audit took a default that was overridden, so what it said first did not hold: "
            f"{named(doubts.overridden, _NAMED)}."
        )
    if baseless:
        yield (
            f"Of {baseless} one side says what stands beside pods at the root, and for the other the default is assumed: whether "
            "CPU moved between pods and system processes there cannot be said. Say it for both."
        )
    if unseen:
        yield (
            f"On {unseen} something may compete with pods that was not read or is not modelled, before or now: whether CPU that "
            "moved between pods there moved as predicted cannot be said."
        )
    if rounded:
        yield (
            f"On {rounded} it is taken for granted how quotas are rounded of limits that are no multiple of 10m: nobody said the "
            "cgroup driver there, or which runtime it is that has the formula. Say it for both."
        )
    if ambiguous:
        yield (
            f"{ambiguous} took the place of nodes of the same size for which different things were predicted. They cannot be "
            "told apart, so they are shown as new."
        )
    told = [node.name for node in after if any(known.confidence == "stated" for known in node.known.values())]
    if told and came_true:
        yield f"What runs now on {named(told, _NAMED)} is taken from the states file, not measured: what came true rests on it."
