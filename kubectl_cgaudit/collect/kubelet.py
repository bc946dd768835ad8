"""Ask the kubelets: what fails on one node costs that node's evidence and nothing more."""

import ipaddress
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.collect.http import UNTRUSTED, Answer, Hide, RequestError, UnreachableError
from kubectl_cgaudit.collect.kubelet_answers import (
    CADVISOR,
    CONFIGZ,
    ENDPOINTS,
    LARGEST,
    METRICS,
    Pods,
    nothing,
    understand,
)
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.collect.node_name import is_name
from kubectl_cgaudit.collect.progress import Progress
from kubectl_cgaudit.collect.renewing import REFUSED, OwnPort, Renewing, is_refusal
from kubectl_cgaudit.collect.transport import Api

SECONDS = 10.0
_DIRECT = {CONFIGZ: "nodes/configz (before 1.33 nodes/proxy)", METRICS: "nodes/metrics", CADVISOR: "nodes/metrics"}
_PROXY = dict.fromkeys(ENDPOINTS, "nodes/proxy")
_AT_ONCE = 8
# A small cluster is asked one node at a time: its API server may be a small machine too.
_NODES_A_TALK = 4
_NODE_FACTOR = 2
_BUSY_PAUSE = 1.0
_VAIN_SECONDS = 300.0
"""So long all kubelets together may keep the audit waiting for nothing: what they answer in takes as long as it takes."""
_NOT_ASKED = f"were not asked for: other kubelets had kept the audit waiting for {_VAIN_SECONDS / 60:g} min"
_SHOWN = 60
_MAY_BE_CUT = "could not be read (the answer does not say where it ends, so it may be cut)"


class _Talk(Struct):
    """A node that is asked: its answers so far, and the reasons why there are none."""

    began: float
    ends: float
    answering: float = 0.0
    """Seconds of the requests that brought something."""
    bodies: dict[str, bytes] = msgspec.field(default_factory=dict)
    reasons: dict[str, str] = msgspec.field(default_factory=dict)

    def missing(self, reason: str) -> None:
        """Give a reason for every endpoint that has neither answer nor reason."""
        for endpoint in ENDPOINTS:
            if endpoint not in self.bodies:
                self.reasons.setdefault(endpoint, reason)


_Get = Callable[[str, float], Answer]
_Ask = Callable[[str, _Talk], None]
_Done = tuple[str, Exception | None]


def from_proxy(
    api: Api, nodes: Sequence[str], pods_by_node: Pods, progress: Progress, *, seconds: float = SECONDS
) -> dict[str, KubeletAnswers]:
    """Through the API server's node proxy. Raises ClusterError when the token is none that can be sent."""
    server = Renewing(api, seconds, LARGEST)

    def ask(node: str, talk: _Talk) -> None:
        if is_name(node):
            _ask(api, server.get, f"/api/v1/nodes/{node}/proxy", _PROXY, talk)
        else:
            talk.missing(f"cannot be asked for ({node[:_SHOWN]!r} is no name of a node)")

    return _together(ask, nodes, pods_by_node, progress, seconds, lambda text: api.hide(text))


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
    server = Renewing(api, seconds, LARGEST)
    door_to = api.kubelet_doors(insecure, seconds, LARGEST)

    def ask(node: str, talk: _Talk) -> None:
        host, port = addresses[node]
        if not (_is_address(host) and 0 < port < 1 << 16):
            talk.missing(f"cannot be asked for ({f'{host}:{port}'[:_SHOWN]!r} is no address)")
            return
        own_port = OwnPort(partial(door_to, host, port), server)
        try:
            _ask(api, own_port.get, "", _DIRECT, talk)
        finally:
            own_port.close()

    return _together(ask, list(addresses), pods_by_node, progress, seconds, lambda text: api.hide(text))


def _is_address(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host)) and "%" not in host
    except ValueError:
        return is_name(host)


def _together(
    ask: _Ask, nodes: Sequence[str], pods_by_node: Pods, progress: Progress, seconds: float, hide: Hide
) -> dict[str, KubeletAnswers]:
    """Ask the nodes, a few at once. Each has its time, and what is waited for nothing has an end for all together."""
    answers: dict[str, KubeletAnswers] = {}
    waiting = list(dict.fromkeys(nodes))
    expected = len(waiting)
    talks: dict[str, _Talk] = {}
    at_once = min(_AT_ONCE, -(-expected // _NODES_A_TALK))
    vain = 0.0
    done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
    # Whoever breaks it off before the first has answered is told where that was.
    progress("kubelets", 0, expected)
    try:
        while talks or (waiting and vain < _VAIN_SECONDS * at_once):
            while waiting and len(talks) < at_once and vain < _VAIN_SECONDS * at_once:
                node, now = waiting.pop(0), time.monotonic()
                talks[node] = _start(ask, node, _Talk(now, now + _NODE_FACTOR * seconds), done)
            for node in _ended(talks, done):
                talk = talks.pop(node)
                talk.ends = 0.0
                talk.missing(f"could not be read (no answer within {seconds:g} s)")
                vain += time.monotonic() - talk.began - talk.answering
                known = understand(node, dict(talk.bodies), dict(talk.reasons), pods_by_node.get(node, set()))
                # What a kubelet said is quoted there, and it may have repeated the token.
                answers[node] = replace(known, problems=tuple(map(hide, known.problems)))
                progress("kubelets", len(answers), expected)
    finally:
        for talk in talks.values():
            talk.ends = 0.0
    answers |= {node: nothing(node, f"{', '.join(ENDPOINTS)} {_NOT_ASKED}") for node in waiting}
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


def _ask(api: Api, get: _Get, prefix: str, grants: Mapping[str, str], talk: _Talk) -> None:
    """Ask one kubelet for everything, until it cannot be reached or its time is over."""
    for endpoint in ENDPOINTS:
        began = time.monotonic()
        if began >= talk.ends:
            return
        try:
            answer = _patiently(get, prefix + endpoint, talk.ends)
        except UnreachableError as failure:
            talk.missing(_unread(failure))
            return
        except RequestError as failure:
            talk.reasons[endpoint] = _unread(failure)
            continue
        if answer.status == 200 and not answer.bounded and endpoint != CONFIGZ:
            talk.reasons[endpoint] = _MAY_BE_CUT
        elif answer.status == 200:
            talk.bodies[endpoint] = answer.body
            talk.answering += time.monotonic() - began
        elif prefix and is_refusal(answer):
            talk.missing(f"may not be read (401): {REFUSED}")
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
