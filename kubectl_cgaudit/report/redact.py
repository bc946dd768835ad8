"""`--redact`: an audit in which pseudonyms stand for the names of a cluster, so that it can be shown to others.

A pseudonym is made from the name alone: the same name has the same one in every audit, and two reports can be compared. Who
guesses a name can check the guess, unless CGAUDIT_REDACT_KEY is set to a secret. What software is called and which version it has
stays, and so do `default`, `kube-system` and the other namespaces that every cluster has.
"""

import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import polars as pl
from msgspec import Struct
from msgspec.structs import fields, replace
from polars import col

from kubectl_cgaudit.audit.model import (
    CERTAINTIES,
    CONFIDENCES,
    EFFECTS,
    SEVERITIES,
    Action,
    Audit,
    Change,
    Coverage,
    CpuOfNode,
    Finding,
    Measure,
    NodeRecord,
    Question,
    Span,
    Subject,
    Where,
    Workload,
)
from kubectl_cgaudit.audit.records import SCHEMA, Containers
from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.collect.owners import workload

T = TypeVar("T")
KEY = "CGAUDIT_REDACT_KEY"
_DIGITS = {"pod": 10}
"""Digits of a pseudonym where they are more than `_FEW`: there are many pods in one namespace."""
_FEW = 6
_SHARED = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
"""Namespaces of every cluster."""
_NAMES: Mapping[type, frozenset[str]] = {
    Subject: frozenset({"name", "namespace"}),
    Where: frozenset({"nodes", "node", "pod", "container"}),
    Change: frozenset({"pod", "node", "container"}),
    Span: frozenset({"container"}),
    Workload: frozenset({"namespace", "name", "nodes_hit"}),
    NodeRecord: frozenset({"name"}),
    Question: frozenset({"nodes"}),
    CpuOfNode: frozenset({"node"}),
    Coverage: frozenset({"windows_nodes", "virtual_nodes"}),
}
"""The fields that hold names and nothing else."""
_WORDS: Mapping[type, frozenset[str]] = {
    Finding: frozenset({"title", "message"}),
    Action: frozenset({"title", "when", "cost", "undo", "alternatives"}),
}
"""The fields whose words are made again, from what is left."""
_COLUMNS = ("cluster", "cluster_uid", "namespace", "workload", "pod", "node", "container")
_IDS = frozenset({"id", "actions", "clears", "lowers", "causes", "waits_for"})
_KEYED = frozenset({"requests", "limits"})
"""What is told by name of a container."""
_IMAGES = frozenset({"image", "images"})
_TOKEN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_PLACE = re.compile(r"\bhttps?://[^\s;,)]+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", re.ASCII)
_MATCH = re.compile(r"match: \{(?:[^{}]|\{[^{}]*\})*\}")
_SAID = (
    "audit node workload inspect shares weight times fraction milli us v1 v2 linear quadratic pod container pods ratio limit",
    "reserve command systemd cgroup runtime burstable default system.slice kubepods before after now any boot gke openshift stay",
    "user-data machineconfig try new-image raise lower shift jvm cadvisor runc crun on-v2 new-runtime before-move before-created",
    "before-kubelet",
)
_OURS = frozenset(
    {*SEVERITIES, *CONFIDENCES, *CERTAINTIES, *EFFECTS, *(word for line in _SAID for word in line.split())}
)
"""Words of the audit itself: alone they tell nothing of a cluster."""
_POOLS = ("nodegroup", "nodepool", "gke-nodepool", "agentpool", "machineset", "pool", "hostname")
"""The last words of labels whose values are names that people give."""


class Pseudonyms:
    """The names of a cluster, and what stands for each."""

    def __init__(self, cluster: Cluster, key: str) -> None:
        self._key = key.encode()
        self._known: dict[str, str] = {}
        for kind, name in _named(cluster):
            if name and name not in _SHARED:
                self._known.setdefault(name, self._made(kind, name))

    def name(self, name: str, kind: str = "name") -> str:
        """Return what stands for a name."""
        if not name or name in _SHARED:
            return name
        if name not in self._known:
            self._known[name] = self._made(kind, name)
        return self._known[name]

    def text(self, text: str) -> str:
        """Return a text in which no known name stands, and no address. Words of the audit itself stay."""

        def told(found: re.Match[str]) -> str:
            return found[0] if found[0] in _OURS else self._known.get(found[0], found[0])

        return _TOKEN.sub(told, _PLACE.sub("(address)", text))

    def id(self, text: str) -> str:
        """Return the id of a finding or action: after the rule stands what it is about."""
        rule, colon, rest = text.partition(":")
        return rule + colon + _TOKEN.sub(lambda found: self._known.get(found[0], found[0]), rest)

    def _made(self, kind: str, name: str) -> str:
        digits = hmac.new(self._key, name.encode(errors="replace"), "sha256").hexdigest()
        return f"{kind}-{digits[: _DIGITS.get(kind, _FEW)]}"


def _named(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield every name of a cluster, and what it is of; the first of equal ones counts."""
    for node in cluster.nodes:
        yield "node", node.name
        yield from (("pool", value) for key, value in sorted(node.labels.items()) if key.split("/")[-1] in _POOLS)
    yield from (("ns", namespace) for namespace in sorted({pod.namespace for pod in cluster.pods}))
    owners = {workload(pod, cluster).name for pod in cluster.pods}
    yield from (("app", name) for name in sorted(owners))
    for pod in cluster.pods:
        yield "pod", pod.name
        if pod.controller:
            yield "owner", pod.controller.name
        yield from (("c", container.name) for container in pod.containers)
    yield from (("cluster", name) for name in cluster.reading.named.values())


def redacted(saved: Saved, cluster: Cluster, key: str = "") -> Saved:
    """Return the audit and its containers with pseudonyms, and without the words that `described` makes."""
    names = Pseudonyms(cluster, key)
    audit = _audit(saved.audit, names)
    return Saved(audit, Containers(lambda: (_records(table, names) for table in saved.containers.frames())))


def _audit(audit: Audit, names: Pseudonyms) -> Audit:
    for finding in (*audit.known, *audit.fixed, *(each.finding for each in audit.excepted)):
        # What is gone is in no cluster.
        _struct(finding.subject, names)
        _struct(finding.where, names)
    cluster = {what: names.name(name, "cluster") for what, name in audit.cluster.items()}
    told = {field.name: _value(getattr(audit, field.name), names, "") for field in fields(audit)}
    return replace(audit, **{**told, "cluster": cluster})


def _struct(record: T, names: Pseudonyms) -> T:
    """Return a record with pseudonyms."""
    own, words = _NAMES.get(type(record), frozenset()), _WORDS.get(type(record), frozenset())
    changed: dict[str, Any] = {}
    for field in fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if field.name in words:
            changed[field.name] = () if isinstance(value, tuple) else ""
        elif field.name in own and not (field.name == "name" and getattr(record, "kind", "") == "audit"):
            changed[field.name] = _names(value, names)
        elif field.name == "states":
            changed[field.name] = _rule(value, names)
        elif field.name in _IDS and not isinstance(value, Mapping):
            changed[field.name] = names.id(value) if isinstance(value, str) else tuple(map(names.id, value))
        elif value:
            changed[field.name] = _value(value, names, field.name)
    return replace(record, **changed)  # type: ignore[type-var]


def _names(value: Any, names: Pseudonyms) -> Any:
    if value is None:
        return None
    return names.name(value) if isinstance(value, str) else tuple(map(names.name, value))


def _rule(states: str, names: Pseudonyms) -> str:
    """Return a line of a states file that matches nothing in particular: its labels and globs are names too."""
    return names.text(_MATCH.sub("match: {name: NODE}", states))


def _value(value: Any, names: Pseudonyms, key: str) -> Any:
    if isinstance(value, Measure):
        return value
    if isinstance(value, Struct):
        return _struct(value, names)
    if isinstance(value, str):
        return names.name(value, "image") if key in _IMAGES else names.text(value)
    if isinstance(value, tuple):
        return tuple(_value(each, names, key) for each in value)
    if isinstance(value, list):
        return [_value(each, names, key) for each in value]
    if isinstance(value, Mapping):
        return {names.name(each) if key in _KEYED else each: _value(own, names, each) for each, own in value.items()}
    return value


def _records(table: pl.DataFrame, names: Pseudonyms) -> pl.DataFrame:
    """Return records with pseudonyms."""
    mapped = table.with_columns(_mapped(table[name], names.name) for name in _COLUMNS).with_columns(
        _mapped(table[name], names.text) for name in ("when", "target")
    )
    whens = table["cases"].explode().struct.field("when").drop_nulls().unique()
    said = {when: names.text(when) for when in whens}
    if any(when != told for when, told in said.items()):
        element = pl.element().struct.with_fields(pl.field("when").replace(list(said), list(said.values())))
        mapped = mapped.with_columns(col.cases.list.eval(element))
    return mapped.cast(pl.Schema(SCHEMA))


def _mapped(texts: pl.Series, make: Any) -> pl.Series:
    """A column with something else in the place of each distinct text."""
    known: Iterable[str] = texts.drop_nulls().unique()
    told = {text: make(text) for text in known}
    found: pl.Series = texts.replace_strict(list(told), list(told.values()), default=None, return_dtype=pl.String)
    return found
