"""API-shaped objects for tests, and the recorded cluster."""

import io
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import yaml

from kubectl_cgaudit.actions.remedies import acted
from kubectl_cgaudit.audit import records
from kubectl_cgaudit.audit.cases import NodeCases, node_cases
from kubectl_cgaudit.audit.inputs import tables
from kubectl_cgaudit.audit.model import Audit, Finding
from kubectl_cgaudit.audit.run import Run, run
from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.audit.thresholds import parse as parse_thresholds
from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.weights import linear, linear_inverse, weight_of
from kubectl_cgaudit.collect import files, kubelet_files
from kubectl_cgaudit.collect.assemble import Assembly, pods_by_node, with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers, Pod
from kubectl_cgaudit.compare.views import NodeView, views
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.detect import target as targets
from kubectl_cgaudit.errors import InputError
from kubectl_cgaudit.report import formats
from kubectl_cgaudit.report.findings import described
from kubectl_cgaudit.report.screen import PLAIN, Screen
from tests.reference.clusters import Kind
from tests.reference.clusters import cluster as random_cluster

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


def viewed(objects: Cluster, rules: str = "", to: str = "v2+runtime") -> tuple[NodeView, ...]:
    """The nodes with the trees of all their cases, under the rules of a states file."""
    parsed = states.parse(rules, "test") if rules else ()
    return tuple(views(tables(node_cases(objects, parsed, targets.parse(to)), objects)))


def ran(objects: Cluster, rules: str = "", to: str = "v2+runtime", *thresholds: str) -> Run:
    """The audit under the rules of a states file, with the tables it was made from."""
    parsed = states.parse(rules, "test") if rules else ()
    return run(objects, parsed, targets.parse(to), parse_thresholds(thresholds), None)


def audited(objects: Cluster, rules: str = "", to: str = "v2+runtime", *thresholds: str) -> Audit:
    """The audit under the rules of a states file, in words, without the actions: to prove them takes as long as the rest."""
    return described(ran(objects, rules, to, *thresholds).audit)


def audited_with_actions(objects: Cluster, rules: str = "", to: str = "v2+runtime", *thresholds: str) -> Audit:
    """The same with its actions."""
    return saved(objects, rules, to, *thresholds).audit


def saved(objects: Cluster, rules: str = "", to: str = "v2+runtime", *thresholds: str) -> Saved:
    """The same with its actions and the records of its containers."""
    made = ran(objects, rules, to, *thresholds)
    whole = described(acted(made, objects))
    return Saved(whole, records.containers(whole, made.tables, made.judged))


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
    return audited_with_actions(recorded(), STATES.read_text(), to)


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


def rendered(name: str, found: Saved, screen: Screen = PLAIN) -> str:
    """All of a report; of a binary format each byte as one character."""
    if not formats.has_records(name):
        return formats.text(name, found, screen)
    writer = formats.writer(name)
    parts = [*writer.head(found.audit), *map(writer.records, found.containers.frames()), *writer.tail()]
    return b"".join(parts).decode("latin-1" if name in formats.BINARY else "utf-8")


def compared(objects: Cluster, rules: str = "", to: str = "v2+runtime") -> tuple[NodeCases, ...]:
    """The cases of every node under the rules of a states file."""
    return node_cases(objects, states.parse(rules, "test") if rules else (), targets.parse(to))


def audit_of(
    objects: Cluster, rules: tuple[states.Rule, ...], target: targets.Scenario, thresholds: Thresholds, time: str | None
) -> Saved:
    """The audit of a cluster with the records of its containers, without words and actions."""
    made = run(objects, rules, target, thresholds, time)
    return Saved(made.audit, records.containers(made.audit, made.tables, made.judged))


def pod_values(
    found: Saved, fields: Sequence[str] = ("before_value", "after_value")
) -> dict[str, list[tuple[Any, ...]]]:
    """Some fields of the records of the containers of each pod, by the pod's name."""
    values: dict[str, list[tuple[Any, ...]]] = {}
    for frame in found.containers.frames():
        for row in frame.iter_rows(named=True):
            values.setdefault(row["pod"], []).append(tuple(row[field] for field in fields))
    return values


def random_objects(kind: str, seed: int) -> tuple[Cluster, str, str]:
    """A random cluster of the reference model, the text of its states file, and its target, where that is no file."""
    made = random_cluster(cast("Kind", kind), seed)
    folder = Path(tempfile.mkdtemp())
    (folder / "c.json").write_text(listed(*made.objects))
    target = made.target
    if isinstance(target, list):
        (folder / "t.yaml").write_text(yaml.safe_dump(target))
        target = str(folder / "t.yaml")
    objects = files.read((str(folder / "c.json"),), lambda _namespace, _labels: True, "")
    return objects, yaml.safe_dump(made.states), target


def random_audit(kind: str, seed: int) -> Audit:
    """The audit of a random cluster of the reference model, with its actions and words."""
    return audited(*random_objects(kind, seed))
