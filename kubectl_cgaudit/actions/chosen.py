"""What `--what-if` names: an action by its number or id, or a file of changes. What is changed is what comes after the move.

A file is a YAML list. A rule of the states file says what nodes become; a rule about a workload what its containers ask for:

- {match: {name: worker-c}, system_slice: 39}
- workload: shop/Deployment/checkout
  requests: {app: 500m}
  limits: {app: 1}
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kubectl_cgaudit import settings
from kubectl_cgaudit.actions.change import Change, NodeChange, WorkloadChange, together
from kubectl_cgaudit.audit.model import Action
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.collect.owners import workload
from kubectl_cgaudit.collect.quantity import milli
from kubectl_cgaudit.detect.states import Rule, rule
from kubectl_cgaudit.detect.target import Scenario
from kubectl_cgaudit.errors import InputError, UsageError
from kubectl_cgaudit.text import named

_KEYS = ("workload", "requests", "limits")
_NAMED = 10


class Proposal(NamedTuple):
    """An action, and what it changes; nothing where no prediction knows what it does."""

    action: Action
    change: Change


class Chosen(NamedTuple):
    """All that was named, as one change."""

    change: Change
    names: tuple[str, ...]
    """The id of each action, and the name of each file."""


def chosen(said: Sequence[str], cluster: Cluster, propose: Callable[[], Sequence[Proposal]]) -> Chosen:
    """Return what is named. `propose` is asked for the actions only where one is named.

    Raises UsageError where something is neither an action nor a file, or changes nothing.
    """
    known: Sequence[Proposal] | None = None
    changes: dict[str, Change] = {}
    for each in said:
        if _is_file(each):
            changes[Path(each).name] = _of_file(each, cluster)
        else:
            known = propose() if known is None else known
            found = _of_action(each, known)
            changes[found.action.id] = found.change
    return Chosen(together(changes.values()), tuple(changes))


def _is_file(said: str) -> bool:
    try:
        return Path(said).exists() and not Path(said).is_dir()
    except (OSError, ValueError):
        return False


def _of_action(said: str, known: Sequence[Proposal]) -> Proposal:
    ids = [each.action.id for each in known]
    place = int(said) - 1 if said.isascii() and said.isdigit() and len(said) <= len(str(len(ids))) else -1
    if said in ids:
        place = ids.index(said)
    if not 0 <= place < len(ids):
        there = f"there are {named(ids, _NAMED)}" if ids else "there is no action"
        raise UsageError(f"--what-if {said} is no action and no file; {there}")
    found = known[place]
    if found.change == Change():
        raise UsageError(f"--what-if {said}: what {ids[place]} finds or does is not predicted; name another action")
    return found


def _of_file(path: str, cluster: Cluster) -> Change:
    source = Path(path).name
    rules = settings.loaded(settings.read(path, "file of --what-if"), source)
    if not isinstance(rules, list) or not rules:
        raise UsageError(
            f"--what-if {source} is no list of rules; write: - {{match: {{name: worker-*}}, system_slice: 39}}"
        )
    nodes: list[tuple[str, NodeChange]] = []
    workloads: list[WorkloadChange] = []
    keys = {(pod.namespace, owner.kind, owner.name) for pod in cluster.pods for owner in (workload(pod, cluster),)}
    for number, said in enumerate(rules, start=1):
        where = f"{source} rule {number}"
        if isinstance(said, dict) and "workload" in said:
            workloads.append(_of_workload(said, where, keys, cluster))
        else:
            nodes += _of_nodes(rule(said, where), path, cluster)
    return Change(tuple(nodes), tuple(workloads))


def _of_nodes(said: Rule, path: str, cluster: Cluster) -> Iterator[tuple[str, NodeChange]]:
    matching = [node.name for node in cluster.nodes if said.matches(node)]
    if not matching:
        raise UsageError(
            f"{said.where} matches no node; there are {named([node.name for node in cluster.nodes], _NAMED)}"
        )
    target = Scenario(Path(path).name, v2=False, new_runtime=False, runtimes=(), kubelet=None, rules=(said,), file=path)
    return ((name, NodeChange(target=target)) for name in matching)


def _of_workload(
    said: Mapping[str, Any], where: str, keys: set[tuple[str, str, str]], cluster: Cluster
) -> WorkloadChange:
    settings.mapping(said, where, _KEYS)
    name = settings.text(said["workload"], f"{where}: workload")
    key = tuple(name.split("/"))
    if len(key) != len(_KEYS) or key not in keys:
        near = sorted("/".join(each) for each in keys if each[-1] == key[-1])
        hint = f"; did you mean {near[0]}?" if near else "; write NAMESPACE/KIND/NAME, as findings do"
        raise UsageError(f"{where}: there is no workload {name}{hint}")
    amounts = {what: _amounts(said.get(what, {}), f"{where}: {what}") for what in ("requests", "limits")}
    if not any(amounts.values()):
        raise UsageError(f"{where} changes nothing; add requests or limits: {{CONTAINER: 500m}}")
    pods = (
        pod for pod in cluster.pods if (own := workload(pod, cluster)) and (pod.namespace, own.kind, own.name) == key
    )
    there = {container.name for pod in pods for container in pod.containers}
    for container in dict.fromkeys((*dict(amounts["requests"]), *dict(amounts["limits"]))):
        if container not in there:
            raise UsageError(f"{where}: {name} has no container {container}; it has {named(sorted(there), _NAMED)}")
    return WorkloadChange(key[0], key[1], key[2], amounts["requests"], amounts["limits"])


def _amounts(said: object, where: str) -> tuple[tuple[str, int], ...]:
    found = []
    for name, text in settings.texts(said, where).items():
        try:
            found.append((name, milli(text)))
        except InputError as error:
            raise UsageError(f"{where}: {name}: {error}; write CPU as 500m or 0.5") from None
    return tuple(sorted(found))
