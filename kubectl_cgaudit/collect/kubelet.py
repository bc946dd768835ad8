"""Ask the kubelets, or read their saved answers: what fails on one node costs that node's evidence and nothing more."""

import ipaddress
import queue
import re
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from kubectl_cgaudit.collect import metrics
from kubectl_cgaudit.collect.door import Answer, Door
from kubectl_cgaudit.collect.failure import UNTRUSTED, RequestError, UnreachableError
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.collect.progress import Progress
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError, InputError

SECONDS = 10.0
CONFIGZ, METRICS, CADVISOR = "/configz", "/metrics", "/metrics/cadvisor"
ENDPOINTS = (CONFIGZ, METRICS, CADVISOR)
_FILES = {CONFIGZ: "configz.txt", METRICS: "metrics.txt", CADVISOR: "metrics-cadvisor.txt"}
_DIRECT = {CONFIGZ: "nodes/configz (before 1.33 nodes/proxy)", METRICS: "nodes/metrics", CADVISOR: "nodes/metrics"}
_PROXY = dict.fromkeys(ENDPOINTS, "nodes/proxy")
_AT_ONCE = 8
# A small cluster is asked one node at a time: its API server may be a small machine too.
_NODES_A_TALK = 4
_NODE_FACTOR = 2
_LARGEST = 64 << 20
_BUSY_PAUSE = 1.0
_REFUSED = "the API server refuses the credentials"
_SHOWN = 60
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", re.ASCII)

Pods = Mapping[str, set[tuple[str, str]]]
_Parsed = TypeVar("_Parsed")


class _Talk(Struct):
    """A node that is asked: its answers so far, and the reasons why there are none."""

    ends: float
    bodies: dict[str, bytes] = msgspec.field(default_factory=dict)
    reasons: dict[str, str] = msgspec.field(default_factory=dict)

    def missing(self, reason: str) -> None:
        """Give a reason for every endpoint that has neither answer nor reason."""
        for endpoint in ENDPOINTS:
            if endpoint not in self.bodies:
                self.reasons.setdefault(endpoint, reason)


class _Kind(Struct):
    kind: str = ""


_FROM_SPEC = "shows shares from the spec (kubelet_metrics_provider cri): they prove nothing"
_Get = Callable[[str, float], Answer]
_Ask = Callable[[str, _Talk], None]
_Done = tuple[str, Exception | None]


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


def from_proxy(
    api: Api, nodes: Sequence[str], pods_by_node: Pods, progress: Progress, *, seconds: float = SECONDS
) -> dict[str, KubeletAnswers]:
    """Through the API server's node proxy. Raises ClusterError when the token is none that can be sent."""
    server = _Server(api, seconds)

    def ask(node: str, talk: _Talk) -> None:
        if _is_name(node):
            _ask(api, server.get, f"/api/v1/nodes/{node}/proxy", _PROXY, talk)
        else:
            talk.missing(f"cannot be asked for ({node[:_SHOWN]!r} is no name of a node)")

    return _together(ask, nodes, pods_by_node, progress, seconds)


def from_kubelets(
    api: Api,
    addresses: Mapping[str, tuple[str, int]],
    pods_by_node: Pods,
    progress: Progress,
    *,
    insecure: bool = False,
    seconds: float = SECONDS,
) -> dict[str, KubeletAnswers]:
    """At each kubelet's own address and port, with the caller's token or certificate.

    Nothing is sent to a kubelet that the cluster's CA does not vouch for, unless `insecure` or the kubeconfig says so.
    Raises ClusterError when the certificates of the kubeconfig cannot be used.
    """
    door_to = api.kubelet_doors(insecure, seconds, _LARGEST)

    def ask(node: str, talk: _Talk) -> None:
        host, port = addresses[node]
        if not (_is_address(host) and 0 < port < 1 << 16):
            talk.missing(f"cannot be asked for ({f'{host}:{port}'[:_SHOWN]!r} is no address)")
            return
        door = door_to(host, port)
        try:
            _ask(api, door.get, "", _DIRECT, talk)
        finally:
            door.pool.clear()

    return _together(ask, list(addresses), pods_by_node, progress, seconds)


def understand(
    node: str, bodies: Mapping[str, bytes], reasons: Mapping[str, str], pods: set[tuple[str, str]]
) -> KubeletAnswers:
    """The answers of a node from its bodies by endpoint, and the reasons for those that are missing."""
    unread = dict(reasons)

    def parse(endpoint: str, function: Callable[[bytes], _Parsed], otherwise: _Parsed) -> _Parsed:
        if endpoint in unread or endpoint not in bodies:
            return otherwise
        try:
            return function(bodies[endpoint])
        except InputError as error:
            unread[endpoint] = f"could not be used: {error}"
            return otherwise

    # Who says its name needs no pods to prove it.
    named = parse(METRICS, metrics.node_named, None)
    if named is None:
        stranger = parse(CADVISOR, lambda text: _other_pods(text, pods), None)
    else:
        stranger = None if named == node else f"{METRICS} is of another node ({named[:253]!r})"
    if stranger:
        return _nothing(node, f"{stranger}: all answers were ignored")
    version = parse(METRICS, metrics.cgroup_version, None)
    not_known: bool | None = None
    from_spec = parse(METRICS, metrics.stats_from_spec, not_known)
    no_shares: dict[str, int] = {}
    shares = parse(CADVISOR, _some_shares, no_shares)
    config = parse(CONFIGZ, metrics.config, None)
    return KubeletAnswers(
        node=node,
        # A damaged text proves nothing, not even by the rows before the damage.
        cgroup_version=None if METRICS in unread else version,
        stats_from_spec=from_spec,
        shares=shares,
        config=config,
        problems=(*_sentences(unread), *([_FROM_SPEC] if from_spec else [])),
    )


def _some_shares(text: bytes) -> dict[str, int]:
    found = metrics.shares(text)
    if not found:
        raise InputError("there is no container_spec_cpu_shares in it; see whether the kubelet leaves cAdvisor out")
    kubernetes = [path for path in found if "kubepods" in path]
    if kubernetes and not any(path.startswith("/kubepods") for path in kubernetes):
        shown = min(kubernetes)[:_SHOWN]
        raise InputError(f"its pods are under {shown!r}: a kubelet with a --cgroup-root of its own is not modelled")
    return found


def _other_pods(text: bytes, pods: set[tuple[str, str]]) -> str | None:
    named = metrics.pods_named(text)
    if not named or not pods or named & pods:
        return None
    example = "/".join(min(named))[:253]
    return f"{CADVISOR} is of another node (it names {example!r} and none of the pods that run here)"


def _sentences(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence for each reason, naming every endpoint it stands for."""
    by_reason: dict[str, list[str]] = {}
    for endpoint in ENDPOINTS:
        if endpoint in reasons:
            by_reason.setdefault(reasons[endpoint], []).append(endpoint)
    return tuple(f"{', '.join(endpoints)} {reason}" for reason, endpoints in by_reason.items())


def _nothing(node: str, problem: str) -> KubeletAnswers:
    return KubeletAnswers(
        node=node, cgroup_version=None, stats_from_spec=None, shares={}, config=None, problems=(problem,)
    )


def _is_name(node: str) -> bool:
    """Whether it can stand in a path: quoting would leave `..` as it is."""
    return bool(_NAME.fullmatch(node)) and ".." not in node


def _is_address(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host)) and "%" not in host
    except ValueError:
        return _is_name(host)


def _saved_as(node: str) -> dict[str, str]:
    """The names of a node's files by endpoint."""
    return {endpoint: f"{node}.{ending}" for endpoint, ending in _FILES.items()}


def _saved(folder: Path, listed: set[str], node: str, pods: set[tuple[str, str]]) -> KubeletAnswers:
    names = _saved_as(node)
    if not _is_name(node) or not listed & set(names.values()):
        expected = ", ".join(_saved_as("NODE").values())
        return _nothing(node, f"no saved answers in {folder} (their names are {expected})")
    bodies: dict[str, bytes] = {}
    reasons: dict[str, str] = {}
    for endpoint, name in names.items():
        if name not in listed:
            reasons[endpoint] = f"was not saved (there is no {name})"
            continue
        body = _contents(folder / name)
        if isinstance(body, bytes):
            bodies[endpoint] = body
        else:
            reasons[endpoint] = f"could not be read ({name}: {body})"
    return understand(node, bodies, reasons, pods)


def _contents(path: Path) -> bytes | str:
    """The bytes of a file, or why they cannot be had."""
    try:
        if not path.is_file():  # Opening a pipe would wait for ever.
            return "it is no file"
        if path.stat().st_size > _LARGEST:
            return f"larger than {_LARGEST >> 20} MiB"
        return path.read_bytes()
    except OSError as error:
        return error.strerror or "unreadable"


def _together(
    ask: _Ask, nodes: Sequence[str], pods_by_node: Pods, progress: Progress, seconds: float
) -> dict[str, KubeletAnswers]:
    """Ask the nodes, a few at once, and give up each whose time is over."""
    answers: dict[str, KubeletAnswers] = {}
    waiting = list(dict.fromkeys(nodes))
    expected = len(waiting)
    talks: dict[str, _Talk] = {}
    at_once = min(_AT_ONCE, -(-expected // _NODES_A_TALK))
    done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
    try:
        while waiting or talks:
            while waiting and len(talks) < at_once:
                node = waiting.pop(0)
                talks[node] = _start(ask, node, _Talk(time.monotonic() + _NODE_FACTOR * seconds), done)
            for node in _ended(talks, done):
                talk = talks.pop(node)
                talk.ends = 0.0
                talk.missing(f"could not be read (no answer within {seconds:g} s)")
                answers[node] = understand(node, dict(talk.bodies), dict(talk.reasons), pods_by_node.get(node, set()))
                progress("kubelets", len(answers), expected)
    finally:
        for talk in talks.values():
            talk.ends = 0.0
    return {node: answers[node] for node in dict.fromkeys(nodes)}


def _start(ask: _Ask, node: str, talk: _Talk, done: "queue.SimpleQueue[_Done]") -> _Talk:
    def run() -> None:
        try:
            ask(node, talk)
        except Exception as error:  # noqa: BLE001 - raised again where the answers are awaited
            done.put((node, error))
        else:
            done.put((node, None))

    # No executor: its threads are joined at exit, where one that a kubelet holds would keep the program from ending.
    threading.Thread(target=run, name=f"kubelet {node}", daemon=True).start()
    return talk


def _ended(talks: Mapping[str, _Talk], done: "queue.SimpleQueue[_Done]") -> list[str]:
    """The nodes that have answered, or else those whose time is over. Raises what ended a thread."""
    left = min(talk.ends for talk in talks.values()) - time.monotonic()
    try:
        node, error = done.get(timeout=max(left, 0.0))
    except queue.Empty:
        return [node for node, talk in talks.items() if talk.ends <= time.monotonic()]
    if error:
        raise error
    # A thread that was given up may end long after.
    return [node] if node in talks else []


class _Server:
    """The API server, asked by several threads, with credentials that may expire meanwhile."""

    def __init__(self, api: Api, seconds: float) -> None:
        self._api = api
        self._seconds = seconds
        self._lock = threading.Lock()
        self._door = api.door(seconds, _LARGEST)
        # The lists were read with these. Those that never were good are not renewed: 5,000 nodes would log in as often.
        self._good: Door | None = self._door

    def get(self, path: str, ends: float) -> Answer:
        """As Door.get, once more where the credentials are refused and others can be had."""
        door = self._door
        answer = door.get(path, ends)
        if _is_refusal(answer) and (renewed := self._after(door)):
            door = renewed
            answer = door.get(path, ends)
        if door is self._door and not _is_refusal(answer):
            self._good = door
        return answer

    def _after(self, refused: Door) -> Door | None:
        """The server with the credentials that follow; None where there are none."""
        with self._lock:
            if self._door is refused and self._good is refused:
                self._good = None
                try:
                    self._api.renew(refused)
                    self._door = self._api.door(self._seconds, _LARGEST)
                except ClusterError as error:
                    raise UnreachableError(str(error), f"{_REFUSED}: {error}") from None
            return None if self._door is refused else self._door


def _ask(api: Api, get: _Get, prefix: str, grants: Mapping[str, str], talk: _Talk) -> None:
    """Ask one kubelet for everything, until it cannot be reached or its time is over."""
    for endpoint in ENDPOINTS:
        if time.monotonic() >= talk.ends:
            return
        try:
            answer = _patiently(get, prefix + endpoint, talk.ends)
        except UnreachableError as failure:
            talk.missing(_unread(failure))
            return
        except RequestError as failure:
            talk.reasons[endpoint] = _unread(failure)
            continue
        if answer.status == 200:
            talk.bodies[endpoint] = answer.body
        elif prefix and _is_refusal(answer):
            talk.missing(f"may not be read (401): {_REFUSED}")
            return
        else:
            talk.reasons[endpoint] = _refused(api, endpoint, answer, grants[endpoint])


def _patiently(get: _Get, path: str, ends: float) -> Answer:
    """The answer, asked for once more when the server is busy."""
    answer = get(path, ends)
    if answer.status != 429 or time.monotonic() + _BUSY_PAUSE >= ends:
        return answer
    time.sleep(_BUSY_PAUSE)
    return get(path, ends)


def _unread(failure: RequestError) -> str:
    hint = ": give --kubelet-insecure-tls to ask it all the same" if failure.why.startswith(UNTRUSTED) else ""
    return f"could not be read ({failure.why}){hint}"


def _refused(api: Api, endpoint: str, answer: Answer, grant: str) -> str:
    if answer.status == 403:
        return f"may not be read (403): grant get on {grant}"
    if answer.status == 401:
        return "may not be read (401): the kubelet does not accept the token or certificate it is asked with"
    return f"could not be read ({api.refusal(endpoint, answer).why})"


def _is_refusal(answer: Answer) -> bool:
    """Whether the API server itself refuses the credentials; a kubelet behind its proxy would say it in plain text."""
    try:
        return answer.status == 401 and msgspec.json.decode(answer.body, type=_Kind).kind == "Status"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
