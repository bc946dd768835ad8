"""What the API server answers to a request: which list, which page, with which fault."""

import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from msgspec import Struct

from tests.simulator import faults, kubelets, selectors
from tests.simulator.access import Credentials
from tests.simulator.faults import Fault, Faults, Reply, status
from tests.simulator.pages import RESOURCES, REVISION, BadTokenError, Page, Store, View, read_token, token

_GZIP_FROM = 128 << 10
_NEWER = 7
_LIST = re.compile(r"(/api/v1|/apis/[^/]+/v1)(?:/namespaces/([^/]+))?/([a-z]+)")
_PROXY = re.compile(r"/api/v1/nodes/([^/]+)/proxy/(metrics|metrics/cadvisor|configz)")
_REVIEW = re.compile(r"/apis/authorization\.k8s\.io/v1/(selfsubjectaccessreviews|selfsubjectrulesreviews)")
_VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.2",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-09-15T00:00:00Z",
    "goVersion": "go1.26.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}
_EXPIRED = "The provided continue parameter is too old to display a consistent list result. "
_AGAIN = "You must start a new list without the continue parameter."
_OR_GO_ON = (
    "You can start a new list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were "
    "created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


class Seen(Struct):
    """A request that came, and the status of the answer: 0 when none was sent whole."""

    method: str
    path: str
    headers: dict[str, str]
    status: int = 0
    fault: str = ""
    page: int | None = None


class Server:
    """The state behind the answers: the store, the faults, the credentials, and how old the lists are."""

    def __init__(self, store: Store, troubles: Faults, credentials: Credentials) -> None:
        self.store = store
        self.faults = troubles
        self.credentials = credentials
        self._revisions = dict.fromkeys(RESOURCES, REVISION)
        self._views: dict[tuple[str, ...], View] = {}
        self._lock = threading.Lock()

    def answer(self, seen: Seen, headers: Mapping[str, str], body: bytes) -> Reply:
        """The answer to a request; notes the page and the fault in `seen`."""
        parts = urlsplit(seen.path)
        path, said = unquote(parts.path), headers.get("Authorization", "")
        public = path in ("/version", "/healthz", "/livez", "/readyz")
        if not (public and not said) and not self.credentials.accepts(said):
            return status(401, "Unauthorized", "Unauthorized")
        if seen.method == "POST":
            return self._review(path, body)
        if public:
            said_ok = Reply(200, b"ok", {"Content-Type": "text/plain; charset=utf-8"})
            return (
                Reply(200, msgspec.json.format(msgspec.json.encode(_VERSION), indent=2))
                if path == "/version"
                else said_ok
            )
        if proxied := _PROXY.fullmatch(path):
            return self._kubelet(seen, *proxied.groups())
        listed = _LIST.fullmatch(path)
        resource = RESOURCES.get(listed[3]) if listed else None
        if not (listed and resource and listed[1] == resource.prefix and (resource.namespaced or not listed[2])):
            return status(404, "NotFound", "the server could not find the requested resource", details={})
        query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        try:
            return self._list(seen, resource.name, listed[2] or "", query, "gzip" in headers.get("Accept-Encoding", ""))
        except BadTokenError:
            return status(400, "BadRequest", "continue key is not valid: the encoded token cannot be read")
        except (ValueError, selectors.SelectorError) as error:
            return status(400, "BadRequest", str(error))

    def _list(self, seen: Seen, name: str, namespace: str, query: dict[str, str], gzip: bool) -> Reply:
        view = self._view(name, namespace, query.get("fieldSelector", ""), query.get("labelSelector", ""))
        asked = query.get("continue", "")
        begin, revision = 0, self._revisions[name]
        if asked:
            said = read_token(asked)
            begin = view.find(said.start)
            revision = said.rv if said.rv >= 0 else revision
        total = len(view.positions)
        limit = int(query.get("limit") or 0) or max(total, 1)
        page = Page(view, begin, min(begin + limit, total), limit, revision)
        seen.page = page.number
        fault = self.faults.take(name, namespace, page.number, page.pages)
        if fault:
            seen.fault = fault.kind
            if fault.kind in ("gone", "gone-fresh"):
                return self._gone(name, page, fault.kind == "gone-fresh")
            if refused := self._refused(fault, name, namespace):
                return refused
            page = faults.changed(fault, page, asked)
        elif asked and revision < self._revisions[name]:
            return self._gone(name, page, fresh=False, compact=False)
        return self._content(page, gzip, fault)

    def _content(self, page: Page, gzip: bool, fault: Fault | None) -> Reply:
        small = page.end - page.begin < 200 and len(page.body()) <= _GZIP_FROM
        if gzip and not small:
            reply = Reply(200, self.store.zipped(page), {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})
        else:
            reply = Reply(200, page.body())
        return faults.spoiled(fault, reply) if fault else reply

    def _view(self, *wanted: str) -> View:
        """The view of a resource, a namespace and two selectors; kept, so that a selection is made once for all pages."""
        with self._lock:
            if wanted not in self._views:
                name, namespace, fields, labels = wanted
                self._views[wanted] = selectors.selected(self.store.view(name, namespace), fields, labels)
            return self._views[wanted]

    def _gone(self, name: str, page: Page, fresh: bool, compact: bool = True) -> Reply:
        if compact:
            # From here on the server knows no older state of this list.
            self._revisions[name] += _NEWER
        if not fresh or not page.begin:
            return status(410, "Expired", _EXPIRED + _AGAIN)
        again = {"continue": token(-1, page.view.key(page.begin - 1))}
        return status(410, "Expired", _EXPIRED + _OR_GO_ON, metadata=again)

    def _refused(self, fault: Fault, resource: str, namespace: str = "") -> Reply | None:
        if fault.kind == "expire":
            self.credentials.rotate()
        if fault.kind == "forbidden":
            return faults.forbidden(resource, RESOURCES[resource].group, namespace=namespace)
        return faults.refusal(fault, resource)

    def _kubelet(self, seen: Seen, node: str, endpoint: str) -> Reply:
        found = kubelets.answer(self.store.cluster, node, endpoint)
        fault = self.faults.take(endpoint)
        if not found:
            details = {"name": node, "kind": "nodes"}
            return status(404, "NotFound", f'nodes "{node}" not found', details=details)
        reply = Reply(200, found[1], {"Content-Type": found[0]})
        if not fault:
            return reply
        seen.fault = fault.kind
        if fault.kind == "forbidden":
            return faults.forbidden("nodes/proxy", "", "get", name=node)
        if fault.kind == "expire":
            self.credentials.rotate()
        return faults.refusal(fault, endpoint) or faults.spoiled(fault, reply)

    def _review(self, path: str, body: bytes) -> Reply:
        asked = _REVIEW.fullmatch(path)
        try:
            sent: dict[str, Any] = msgspec.json.decode(body, type=dict)
        except msgspec.DecodeError:
            return status(400, "BadRequest", "the object provided is unrecognized (must be of type SelfSubjectReview)")
        if not asked:
            return status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        if asked[1] == "selfsubjectaccessreviews":
            wants = (sent.get("spec") or {}).get("resourceAttributes") or {}
            name = wants.get("resource", "")
            known = name in RESOURCES or (name == "nodes" and wants.get("subresource") == "proxy")
            reads = wants.get("verb") in ("get", "list", "watch")
            said: dict[str, Any] = {"allowed": known and reads and not self._forbids(wants)}
            if said["allowed"]:
                said["reason"] = 'RBAC: allowed by ClusterRoleBinding "auditors" of ClusterRole "view"'
        else:
            namespace = (sent.get("spec") or {}).get("namespace", "")
            rules = [
                {"verbs": ["get", "list"], "apiGroups": [each.group], "resources": [each.name]}
                for each in RESOURCES.values()
                if not self.faults.forbids(each.name, namespace)
            ]
            said = {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}
        return Reply(201, msgspec.json.encode({**sent, "status": said}) + b"\n")

    def _forbids(self, wants: dict[str, Any]) -> bool:
        if wants.get("subresource") == "proxy":
            return any(self.faults.forbids(endpoint) for endpoint in ("metrics", "metrics/cadvisor", "configz"))
        return self.faults.forbids(wants.get("resource", ""), wants.get("namespace", ""))
