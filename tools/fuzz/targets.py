"""The readers of this tool, each with inputs made for it and what must hold of its results."""

import gzip
import json
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import yaml
from msgspec.structs import replace

from kubectl_cgaudit import plain
from kubectl_cgaudit.audit import saved, thresholds
from kubectl_cgaudit.collect import files, kubelet_answers, live, quantity, selector, snapshot
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.configz import config
from kubectl_cgaudit.collect.http import Answer
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.detect import target as scenario
from kubectl_cgaudit.report import diff_html, diff_markdown, diff_table
from kubectl_cgaudit.report.formats import FORMATS
from tests.support import audit_of as audit
from tests.support import rendered
from tools.fuzz import seeds
from tools.fuzz.check import Target, WrongError
from tools.fuzz.mutate import as_json, damage, numbers, structure, weird

_Understood = TypeVar("_Understood")
_SIDE_KINDS = ("ReplicaSet", "Job", "RuntimeClass", "Event")
_OPENINGS = (b"[", b'{"a":', b'{"a": ', b"- ", b"{a: ")
_JUDGED = 6
_CONNECTED = 4


class Canned(Api):
    """An API server whose answers are there already."""

    def __init__(self, answers: Callable[[str], Answer]) -> None:
        self.host = "api.example:6443"
        self.namespace = "shop"
        self.hide = str
        self._answers = answers

    def fetch(self, path: str, understand: Callable[[Answer], _Understood], **_: object) -> _Understood:
        """What is understood of the answer to a path, the first time."""
        return understand(self._answers(path))


def page(random: Random) -> bool:
    """A damaged page of nodes or pods from an API server."""
    lists = {"nodes": _list("Node", seeds.nodes()), "pods": _list("Pod", seeds.pods())}
    hit = random.choice(("nodes", "pods", "pods"))
    status = random.choice((200,) * 12 + (403, 410, 500))
    body, whole = _document(random, _status(status) if status != 200 else lists[hit])

    def answer(path: str) -> Answer:
        resource = path.partition("?")[0].rpartition("/")[2]
        if "continue=" in path:
            return Answer(200, as_json(_list(resource.title()[:-1], [])))
        return Answer(status, body) if resource == hit else Answer(200, as_json(lists.get(resource, {})))

    api, assembly = Canned(answer), Assembly(lambda _namespace, _labels: True, "")
    live.read_nodes(api, assembly, silent)
    live.read_pods(api, None, assembly, silent)
    cluster = assembly.cluster("fuzz")
    if not cluster.reading.gaps:
        if status != 200 or whole is False:
            raise WrongError("a refused or broken page is no gap")
        sent = _parsed(body)
        if isinstance(sent, dict):
            lists[hit] = sent
            _count(cluster, [item for each in lists.values() for item in each.get("items") or ()])
    _judge(random, cluster)
    return True


def file(random: Random) -> bool:
    """A damaged file for -f: JSON, YAML, or either in gzip."""
    items = seeds.nodes() + seeds.pods() + [{"kind": "ConfigMap", "metadata": {"name": "x"}}] + seeds.owned()
    document = {"kind": "List", "apiVersion": "v1", "items": random.sample(items, 5), "metadata": {}}
    write = random.choice((_as_yaml, as_json, _as_kubectl, _as_kubectl))
    if write is _as_yaml:
        document["items"] = document["items"][:2]
    elif write is _as_kubectl:
        document["items"] = [{"apiVersion": "v1", **each} for each in document["items"]]
    body, _ = _document(random, document, write)
    packed = random.random() < 0.2
    if packed:
        body = gzip.compress(body, 1)
        body = damage(random, body) if random.random() < 0.5 else body
    path = _write("input", body)
    try:
        cluster = files.read((str(path),), lambda _namespace, _labels: True, "")
    except RecursionError:
        # The command line has words for it; nothing else may recurse so deep.
        if packed or any(opening * 900 in body for opening in _OPENINGS):
            return False
        raise
    if not packed and _unnamed(files.of_bytes(body, "input")) != _unnamed(cluster):
        raise WrongError("read object by object it is another cluster than read as a whole")
    sent = None if packed else _parsed(body)
    if isinstance(sent, dict) and isinstance(sent.get("items"), list):
        kind = str(sent.get("kind", "")).removesuffix("List")
        _count(cluster, [each for each in sent["items"] if (kind or _kind(each)) not in _SIDE_KINDS])
    _judge(random, cluster)
    return True


def _unnamed(cluster: Cluster) -> Cluster:
    return replace(cluster, reading=replace(cluster.reading, source=""))


def metrics(random: Random) -> bool:
    """Damaged metrics: fewer rows only if that is said, and no share that the kubelet did not write."""
    true = seeds.metrics()
    hit = random.choice(("/metrics", "/metrics/cadvisor"))
    whole, cut = true[hit], random.random() < 0.3
    body = whole[: random.randrange(len(whole))] if cut else damage(random, whole)
    pods = {("data", "postgres-0")} if random.random() < 0.5 else set()
    found = kubelet_answers.understand("worker-a", {**true, hit: body}, {}, pods)
    if cut:
        right = kubelet_answers.understand("worker-a", true, {}, pods)
        if not found.shares.items() <= right.shares.items() or found.cgroup_version not in (None, right.cgroup_version):
            raise WrongError("half an answer says something else than the whole")
        if not body.endswith(b"\n") and not found.problems:
            raise WrongError("half a line is no problem")
    return not found.problems


def configz(random: Random) -> bool:
    """A damaged /configz."""
    body, _ = _document(random, json.loads(seeds.metrics()["/configz"]))
    found = config(body)
    for amount in (found.system_reserved_milli, found.kube_reserved_milli, found.cpu_cfs_quota_period_us):
        if amount is not None and amount < 0:
            raise WrongError(f"{amount} is no amount")
    return True


def states_file(random: Random) -> bool:
    """A damaged states file, held against two nodes."""
    body, _ = _document(random, seeds.states(), _as_yaml)
    rules = states.load(str(_write("states.yaml", body)))
    audit(seeds.cluster(), rules, scenario.parse("v2+runtime"), thresholds.parse(()), None)
    return True


def report(random: Random) -> bool:
    """A damaged audit for `report`, written in a format."""
    body, whole = _document(random, seeds.audit())
    found = saved.load(body, "audit.json")
    if whole is False:
        raise WrongError("half an audit is an audit")
    rendered(random.choice(FORMATS), found)
    return True


def figures(random: Random) -> bool:
    """An audit with other numbers than it had: what is taken for an audit can be written in all formats, and compared."""
    found = saved.load(as_json(numbers(random, seeds.audit())), "audit.json")
    rendered(random.choice(FORMATS), found)
    sound = saved.load(as_json(seeds.audit()), "sound.json")
    compared = diff(found, sound) if random.randrange(2) else diff(sound, found)
    random.choice((diff_table.render, diff_markdown.render, diff_html.render, plain.as_json))(compared)
    return True


def snapshots(random: Random) -> bool:
    """A damaged snapshot."""
    body, _ = _document(random, seeds.saved_cluster())
    cluster = snapshot.decode(body, "cluster.json", lambda _namespace, _labels: True, "")
    sent = _parsed(body)
    if isinstance(sent, dict):
        wanted = sent["cluster"]
        if (len(cluster.nodes), len(cluster.pods)) != (len(wanted["nodes"]), len(wanted["pods"])):
            raise WrongError("not all of the snapshot was read")
    _judge(random, cluster)
    return True


def words(random: Random) -> bool:
    """Damaged selectors, targets and thresholds."""
    what = random.randrange(3)
    text = random.choice((
        ("app=web,tier!=db,env in (a, b),!legacy", "env notin (a),x==y"),
        ("v2+runtime", "runc=1.3.6,kubelet=1.35", "v2,crun=1.28", "/nowhere.yaml"),
        ("system-loss=10%", "outweighed=10", "pod-move=5%,divisible=5"),
    )[what])  # fmt: skip
    text = damage(random, text.encode()).decode("utf-8", "surrogateescape")[:400]
    if what == 0:
        return selector.parse(text)({"app": "web", "env": "a"}) in (True, False)
    if what == 1:
        audit(seeds.cluster(), (), scenario.parse(text), thresholds.parse(()), None)
    else:
        thresholds.parse((text,))
    return True


def quantities(random: Random) -> bool:
    """Damaged CPU amounts."""
    text: Any = damage(random, random.choice((b"250m", b"1.5", b"2e3", b"1Ki", b"100n", b".5E"))).decode(
        "utf-8", "replace"
    )
    if random.random() < 0.2:
        text = weird(random)
        if not isinstance(text, (str, int, float)):
            return False
    if not 0 <= quantity.milli(text) <= 2**63 - 1:
        raise WrongError(f"{text!r} is out of range")
    return True


def kubeconfigs(random: Random) -> bool:
    """A damaged kubeconfig, from which a connection is made, but nothing is asked."""
    body, _ = _document(random, seeds.KUBECONFIG, random.choice((_as_yaml, as_json)))
    path = _write("kubeconfig", body)
    connection = Connection(kubeconfig=str(path), context=random.choice((None, None, "prod", "test")))
    if random.randrange(_CONNECTED):
        return choose(connection) is not None
    with Api(connection):
        return True


TARGETS: dict[str, tuple[Target, int]] = {
    "page": (page, 26),
    "file": (file, 19),
    "metrics": (metrics, 12),
    "configz": (configz, 7),
    "states": (states_file, 7),
    "report": (report, 5),
    "figures": (figures, 5),
    "snapshot": (snapshots, 6),
    "words": (words, 4),
    "quantity": (quantities, 5),
    "kubeconfig": (kubeconfigs, 4),
}
"""Each with its part of a hundred inputs."""


def _list(kind: str, items: list[Any]) -> dict[str, Any]:
    return {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}


def _status(code: int) -> dict[str, Any]:
    return {"kind": "Status", "metadata": {"continue": ""}, "message": "no", "reason": "Expired", "code": code}


def _as_kubectl(document: Any) -> bytes:
    """As `kubectl get -o json` prints it."""
    try:
        return json.dumps(document, indent=4, sort_keys=True).encode() + b"\n"
    except (RecursionError, TypeError):
        # Too deep for the one who writes it, or damaged so that its keys have no order.
        return as_json(document)


def _as_yaml(document: Any) -> bytes:
    try:
        return yaml.dump(document, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)).encode()
    except UnicodeEncodeError:
        return as_json(document)
    except RecursionError:
        # Too deep for the one who writes it: then as deep for the one who reads it.
        return b"[" * 5000


def _document(random: Random, document: Any, write: Callable[[Any], bytes] = as_json) -> tuple[bytes, bool | None]:
    """Bytes of a damaged document, and whether it is whole: None if nobody knows, False if it was cut short."""
    kind = random.random()
    if kind < 0.65:
        return write(structure(random, document)), True
    if kind < 0.75:
        body = write(document)
        return body[: random.randrange(len(body.rstrip()))], False
    return damage(random, write(structure(random, document) if kind < 0.85 else document)), None


def _parsed(body: bytes) -> Any:
    """What another parser makes of it; None where that has nothing to say."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _kind(item: Any) -> str:
    return str(item.get("kind")) if isinstance(item, dict) else ""


def _count(cluster: Cluster, items: list[Any]) -> None:
    """Every object is there, or is counted under what was set apart."""
    reading = cluster.reading
    # Those of another API group are set apart too, and were not counted among what came.
    sent = {_kind(each) for each in items}
    ignored = sum(
        count for kind, count in reading.ignored.items() if kind in sent or kind.partition(".")[0] not in _SIDE_KINDS
    )
    seen = len(cluster.nodes) + len(cluster.pods) + reading.duplicates + ignored
    if seen != len(items):
        raise WrongError(f"{len(items)} objects came and {seen} are accounted for")


def _judge(random: Random, cluster: Cluster) -> None:
    """Every few inputs go all the way: whatever is read can be judged and written."""
    if not random.randrange(_JUDGED):
        result = audit(cluster, (), scenario.parse("v2+runtime"), thresholds.parse(()), None)
        name = random.choice(FORMATS)
        text = rendered(name, result)
        if not text.strip() and name != "ndjson":  # A line for each pod, and there may be none.
            raise WrongError("an empty report")


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix=f"fuzz-{os.getpid()}-"))


def _write(name: str, body: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(body)
    return path
