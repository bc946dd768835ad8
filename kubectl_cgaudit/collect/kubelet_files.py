"""Kubelets' answers that were saved: `--kubelet=files:DIR`."""

from collections.abc import Container, Sequence
from pathlib import Path

from kubectl_cgaudit.collect import metrics
from kubectl_cgaudit.collect.input import read_settings
from kubectl_cgaudit.collect.kubelet_answers import CADVISOR, CONFIGZ, LARGEST, METRICS, Pods, nothing, understand
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.collect.node_name import is_name
from kubectl_cgaudit.errors import InputError

_FILES = {CONFIGZ: "configz.txt", METRICS: "metrics.txt", CADVISOR: "metrics-cadvisor.txt"}

_LAST_READ = {METRICS: "kubernetes_feature_enabled", CADVISOR: "container_spec_cpu_shares"}
"""Metrics are written in the order of their names, and every kubelet has some after these."""
# https://pkg.go.dev/github.com/prometheus/client_golang/prometheus#Gatherer


def from_files(
    folder: str, nodes: Sequence[str], pods_by_node: Pods, known: Container[str] = ()
) -> dict[str, KubeletAnswers]:
    """Saved answers: NODE.configz.txt, NODE.metrics.txt and NODE.metrics-cadvisor.txt.

    A node whose answers are `known` is left out where the folder has none of it. Raises InputError when there is no such folder.
    """
    listed = saved_in(folder)
    asked = [node for node in nodes if node not in known or listed & set(_saved_as(node).values())]
    return {node: _saved(Path(folder), listed, node, pods_by_node.get(node, set())) for node in asked}


def saved_in(folder: str) -> set[str]:
    """The names of the files in a folder that may be a kubelet's saved answers. Raises InputError without a folder."""
    try:
        return {path.name for path in Path(folder).iterdir() if path.name.endswith(tuple(_FILES.values()))}
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such folder"
        raise InputError(f"{folder} cannot be read: {why}; name a folder of saved kubelet answers") from None


def _saved_as(node: str) -> dict[str, str]:
    """The names of a node's files by endpoint."""
    return {endpoint: f"{node}.{ending}" for endpoint, ending in _FILES.items()}


def _saved(folder: Path, listed: set[str], node: str, pods: set[tuple[str, str]]) -> KubeletAnswers:
    names = _saved_as(node)
    if not is_name(node) or not listed & set(names.values()):
        expected = ", ".join(_saved_as("NODE").values())
        return nothing(node, f"no saved answers in {folder} (their names are {expected})")
    bodies: dict[str, bytes] = {}
    reasons: dict[str, str] = {}
    for endpoint, name in names.items():
        if name not in listed:
            reasons[endpoint] = f"was not saved (there is no {name})"
            continue
        body = _contents(folder / name)
        if isinstance(body, str):
            reasons[endpoint] = f"could not be read ({name}: {body})"
        elif end := _early_end(endpoint, body):
            reasons[endpoint] = f"could not be read ({name} ends with {end}, so it may be cut: save all of it)"
        else:
            bodies[endpoint] = body
    return understand(node, bodies, reasons, pods)


def _early_end(endpoint: str, body: bytes) -> str | None:
    """The metric that the text ends with, where what is read of it would go on behind that."""
    last = metrics.last_named(body) if endpoint in _LAST_READ else None
    return last if last is not None and last <= _LAST_READ[endpoint] else None


def _contents(path: Path) -> bytes | str:
    """The bytes of a file, or why they cannot be had."""
    try:
        if not path.is_file():  # Opening a pipe would wait for ever.
            return "it is no file"
        return read_settings(path, LARGEST)
    except OSError as error:
        return error.strerror or "unreadable"
