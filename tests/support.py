"""API-shaped objects for tests, and the recorded cluster."""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.weights import linear, linear_inverse, weight_of
from kubectl_cgaudit.collect import files, kubelet_files
from kubectl_cgaudit.collect.assemble import Assembly, pods_by_node, with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers, Pod
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.errors import InputError
from kubectl_cgaudit.judge import scenario
from kubectl_cgaudit.judge.audit import Audit, Finding
from kubectl_cgaudit.judge.build import audit
from kubectl_cgaudit.judge.compare import Comparison, compare
from kubectl_cgaudit.judge.thresholds import parse as parse_thresholds
from kubectl_cgaudit.report.formats import render
from kubectl_cgaudit.report.pieces import chunks
from kubectl_cgaudit.report.screen import Screen

GOLDEN = Path(__file__).parent / "golden"
STATES = GOLDEN / "states.yaml"
RECORDED = tuple(str(GOLDEN / name) for name in ("nodes.json", "pods.json", "workloads.json", "runtimeclasses.json"))
RECORDED_FLAGS = [word for path in RECORDED for word in ("-f", path)] + ["--states", str(STATES)]


def node(name: str = "n1", cpu: str = "4", kubelet: str = "v1.33.13", **more: Any) -> dict[str, Any]:
    """A Linux Node; `more` goes into nodeInfo, `labels` into the metadata."""
    labels = more.pop("labels", {})
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "status": {
            "capacity": {"cpu": cpu},
            "allocatable": {"cpu": cpu},
            "nodeInfo": {"kubeletVersion": kubelet, "operatingSystem": "linux", **more},
        },
    }


def container(name: str, request: str | None = None, limit: str | None = None, **more: Any) -> dict[str, Any]:
    """A container's spec."""
    resources: dict[str, Any] = {}
    if request is not None:
        resources["requests"] = {"cpu": request}
    if limit is not None:
        resources["limits"] = {"cpu": limit}
    return {"name": name, "resources": resources, **more}


def pod(
    name: str, *containers: dict[str, Any], qos: str = "Burstable", on: str | None = "n1", **spec: Any
) -> dict[str, Any]:
    """A Running Pod in namespace default. `labels`, `owner` (kind, name) and `phase` are taken out of `spec`."""
    labels, owner, phase = spec.pop("labels", {}), spec.pop("owner", None), spec.pop("phase", "Running")
    namespace = spec.pop("namespace", "default")
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": {"nodeName": on, "containers": list(containers), **spec},
        "status": {"phase": phase, "qosClass": qos},
    }


def cluster(*objects: dict[str, Any]) -> Cluster:
    """The cluster of these objects, read the way a file is."""
    assembly = Assembly(lambda _namespace, _labels: True, "")
    for each in objects:
        assembly.add(each["kind"], each, lambda raw, type_: msgspec.convert(raw, type=type_), "test")
    return assembly.cluster("test")


def requesting(requests: Mapping[str, int]) -> Cluster:
    """A large node with one pod of these containers, by what they ask for in thousandths of a CPU."""
    return cluster(node(cpu="32"), pod("p", *(container(name, f"{milli}m") for name, milli in requests.items())))


def compared(objects: Cluster, rules: str = "", to: str = "v2+runtime") -> tuple[Comparison, ...]:
    """The comparison under the rules of a states file."""
    return compare(objects, states.parse(rules, "test") if rules else (), scenario.parse(to))


def audited(objects: Cluster, rules: str = "", to: str = "v2+runtime", *thresholds: str) -> Audit:
    """The audit under the rules of a states file."""
    parsed = states.parse(rules, "test") if rules else ()
    return audit(objects, parsed, scenario.parse(to), parse_thresholds(thresholds), None)


def other(pod: Pod, **fields: Any) -> Pod:
    """The pod with other values of what it has in common with its replicas."""
    return msgspec.structs.replace(pod, alike=msgspec.structs.replace(pod.alike, **fields))


def recorded() -> Cluster:
    """The recorded cluster."""
    return files.read(RECORDED, lambda _namespace, _labels: True, "")


def recorded_blind() -> Cluster:
    """The recorded cluster without anything that speaks of what its nodes run."""
    found = recorded()
    nodes = tuple(
        msgspec.structs.replace(
            each,
            handlers=(),
            kubelet_version="v1.33.13",
            runtime_version="containerd://1.7.0-x",
            os_image="Custom",
            kernel="x",
        )
        for each in found.nodes
    )
    pods = tuple(other(each, read_back_milli=None) for each in found.pods)
    return msgspec.structs.replace(found, nodes=nodes, pods=pods)


def recorded_audit(to: str = "v2+runtime") -> Audit:
    """The audit of the recorded cluster, with what its nodes really ran."""
    return audited(recorded(), STATES.read_text(), to)


def golden_json(name: str) -> Any:
    """A recorded JSON file."""
    return json.loads((GOLDEN / name).read_text())


def of_rule(result: Audit, rule: str) -> dict[str, Finding]:
    """The findings of a rule by their subject."""
    return {finding.subject.title: finding for finding in result.findings if finding.rule == rule}


def severities(result: Audit, rule: str) -> dict[str, str]:
    """Those of the findings of a rule, by their subject."""
    return {title: finding.severity for title, finding in of_rule(result, rule).items()}


V1 = "- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.1.5}}"
V2_LINEAR = "- {cgroup: v2, runtimes: {default: runc 1.1.15}}"
V2_QUADRATIC = "- {cgroup: v2, runtimes: {default: runc 1.3.6}}"


def with_kubelets(objects: Cluster) -> Cluster:
    """The cluster with what the recorded kubelets answered."""
    names = [each.name for each in objects.nodes]
    return with_answers(objects, kubelet_files.from_files(str(GOLDEN), names, pods_by_node(objects)))


RESTARTED = (("quadratic", 20), ("quadratic", 21), ("linear", 1), ("linear", 2))


def half_restarted(pods: Sequence[tuple[str, int]] = RESTARTED, **spec: Any) -> Cluster:
    """A v2 node whose runtime went from linear to quadratic; p1 and p2 were restarted since, p3 and p4 were not."""
    raws, shown = [], {}
    for number, (formula, day) in enumerate(pods, start=1):
        raw = pod(f"p{number}", container("app", "500m"), container("side", "50m"), **spec)
        raw["status"]["containerStatuses"] = [
            {
                "name": name,
                "containerID": f"containerd://{name}{number}",
                "state": {"running": {"startedAt": f"2026-11-{day:02}T00:00:00Z"}},
            }
            for name in ("app", "side")
        ]
        raws.append((raw, formula))
    objects = cluster(node(), *(raw for raw, _ in raws))
    for each, (_, formula) in zip(objects.pods, raws, strict=True):
        parent = paths.pod(each, "systemd")
        assert parent is not None
        shown[parent] = linear_inverse(linear(563))
        for c, milli in zip(each.containers, (512, 51), strict=True):
            path = paths.container(c.runtime_id, parent, "systemd")
            assert path is not None
            shown[path] = linear_inverse(weight_of(milli, "linear" if formula == "linear" else "quadratic"))
    answers = KubeletAnswers("n1", "v2", False, shown, None, ())
    return with_answers(objects, {"n1": answers})


ONE = pod("p", container("app", "1"))


def the_finding(rule: str, rules: str, to: str, *objects: dict[str, Any], thresholds: tuple[str, ...] = ()) -> Finding:
    """The only finding of a rule about these objects."""
    (finding,) = of_rule(audited(cluster(*objects), rules, to, *thresholds), rule).values()
    return finding


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def __init__(self, *, terminal: bool = True, encoding: str = "utf-8") -> None:
        super().__init__()
        self._terminal, self.encoding = terminal, encoding

    def isatty(self) -> bool:
        return self._terminal


def listed(*objects: dict[str, object]) -> str:
    return json.dumps({"kind": "List", "items": list(objects)})


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "kubectl_cgaudit", *words]


def read_text(tmp_path: Path, text: str) -> Cluster:
    """The cluster of a file with this text."""
    path = tmp_path / "f"
    path.write_text(text)
    return files.read((str(path),), lambda _namespace, _labels: True, "")


def refused_text(tmp_path: Path, text: str) -> str:
    """Why a file with this text is refused."""
    with pytest.raises(InputError) as error:
        read_text(tmp_path, text)
    return str(error.value).replace(str(tmp_path / "f"), "FILE").replace("f:", "FILE:")


def rendered(name: str, found: Audit, screen: Screen | None = None) -> str:
    """All of a report."""
    made = render(name, found, screen)
    return made if isinstance(made, str) else "".join(chunks([made], found, lambda _, text: text))
