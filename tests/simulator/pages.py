"""Lists in pages: rendered once to files, cut out of them for any limit, and compressed once for each page."""

import base64
import os
import tempfile
import threading
import zlib
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.simulator import shapes
from tests.simulator.cluster import Cluster

REVISION = 1_200_000
PAGE_SIZE = 500
_BLOCK = 500
_AHEAD = 8
_SOURCES = ("dice.py", "cluster.py", "podshape.py", "managed.py", "shapes.py", "kubelets.py", "pages.py")


class Resource(Struct, frozen=True):
    """Something that can be listed."""

    name: str
    kind: str
    version: str
    prefix: str
    namespaced: bool = False

    @property
    def group(self) -> str:
        """Its API group; empty for the core."""
        return self.version.rpartition("/")[0]


RESOURCES = {
    each.name: each
    for each in (
        Resource("nodes", "Node", "v1", "/api/v1"),
        Resource("namespaces", "Namespace", "v1", "/api/v1"),
        Resource("pods", "Pod", "v1", "/api/v1", True),
        Resource("events", "Event", "v1", "/api/v1", True),
        Resource("replicasets", "ReplicaSet", "apps/v1", "/apis/apps/v1", True),
        Resource("jobs", "Job", "batch/v1", "/apis/batch/v1", True),
        Resource("runtimeclasses", "RuntimeClass", "node.k8s.io/v1", "/apis/node.k8s.io/v1"),
    )
}


class Token(Struct, frozen=True):
    """What a continue token carries: the list's resourceVersion (-1 for any newer), and the key to go on from."""

    v: str
    rv: int
    start: str


class BadTokenError(ValueError):
    """No continue token of this server."""


def token(revision: int, key: str) -> str:
    """The token to go on after a key."""
    # Without a revision the server leaves the slash out.
    start = (key if revision >= 0 else key[1:]) + "\0"
    raw = msgspec.json.encode(Token("meta.k8s.io/v1", revision, start))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def read_token(text: str) -> Token:
    """What is in a token. Raises BadTokenError."""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Token)
    except (ValueError, msgspec.DecodeError) as error:
        raise BadTokenError(text) from error


def compressed(body: bytes) -> bytes:
    """gzip at the API server's level, without a time."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


class Objects:
    """The rendered objects of one resource, in a file."""

    def __init__(self, path: Path, keys: list[str], sizes: Sequence[int]) -> None:
        self.keys = keys
        # Between two objects there is a comma.
        self._at = [0, *accumulate(size + 1 for size in sizes)]
        self._file = os.open(path, os.O_RDONLY)

    def raw(self, begin: int, end: int) -> bytes:
        """The objects from begin to before end, with commas between them."""
        if begin >= end:
            return b""
        return os.pread(self._file, self._at[end] - 1 - self._at[begin], self._at[begin])

    @property
    def size(self) -> int:
        """Bytes of all objects."""
        return self._at[-1]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class View(Struct, frozen=True):
    """A list: all objects of a resource, those of a namespace, or those that a selector leaves over."""

    resource: Resource
    objects: Objects
    positions: Sequence[int]
    prefix: str = ""
    selected: bool = False

    def key(self, place: int) -> str:
        """The key at a place, without the namespace that is listed."""
        return self.objects.keys[self.positions[place]][len(self.prefix) :]

    def find(self, start: str) -> int:
        """The place of the first object at or after the start of a token."""
        wanted = bisect_left(self.objects.keys, self.prefix + "/" + start.lstrip("/"))
        return bisect_left(self.positions, wanted)

    def raw(self, begin: int, end: int) -> bytes:
        """The objects at these places."""
        if isinstance(self.positions, range):
            return self.objects.raw(self.positions.start + begin, self.positions.start + end)
        return b",".join(self.objects.raw(at, at + 1) for at in self.positions[begin:end])


class Page(Struct, frozen=True):
    """A part of a list. Faults change what is asked for by `after`, `lead` and `skip`."""

    view: View
    begin: int
    end: int
    limit: int
    revision: int
    after: str | None = None
    """Another continue token than the right one."""
    lead: int = 0
    """So many objects of the page before come again."""
    skip: int = 0
    """So many objects at the beginning are gone."""

    @property
    def number(self) -> int:
        """Which page it is, from 0."""
        return self.begin // self.limit

    @property
    def pages(self) -> int:
        """How many pages the list has."""
        return max(1, -(-len(self.view.positions) // self.limit))

    def head(self) -> bytes:
        """The bytes before the objects."""
        resource, left = self.view.resource, len(self.view.positions) - self.end
        metadata: dict[str, object] = {"resourceVersion": str(self.revision)}
        if left:
            metadata["continue"] = self.after or token(self.revision, self.view.key(self.end - 1))
            if not self.view.selected:
                metadata["remainingItemCount"] = left
        start = {"kind": f"{resource.kind}List", "apiVersion": resource.version, "metadata": metadata}
        return msgspec.json.encode(start)[:-1] + b',"items":['

    def body(self) -> bytes:
        """The whole answer."""
        again = self.view.raw(max(self.begin - self.lead, 0), self.begin)
        own = self.view.raw(min(self.begin + self.skip, self.end), self.end)
        return b"".join((self.head(), again, b"," if again and own else b"", own, b"]}\n"))

    @property
    def plain(self) -> bool:
        """Whether it is what an undisturbed server sends, and so may be kept."""
        return not (self.after or self.lead or self.skip or self.view.selected) and self.revision == REVISION


class Store:
    """The pages of a cluster, kept in a folder (by default in the system's, named by seed, size and this code)."""

    def __init__(self, cluster: Cluster, folder: Path | None = None, page_size: int = PAGE_SIZE) -> None:
        self.cluster = cluster
        self.folder = folder or Path(tempfile.gettempdir()) / f"simulated-cluster-{cluster.identity}-{_version()}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._page_size = page_size
        self._objects: dict[str, Objects] = {}
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close the files; they stay."""
        for each in self._objects.values():
            each.close()
        self._objects.clear()

    def build(self) -> None:
        """Render and compress everything that is not there yet."""
        for name in RESOURCES:
            self._compress(name)

    def objects(self, name: str) -> Objects:
        """The objects of a resource, rendered when first asked for."""
        with self._lock:
            if name not in self._objects:
                index = self.folder / f"{name}.index"
                if not index.exists():
                    self._render(name, index)
                keys, sizes = msgspec.msgpack.decode(index.read_bytes(), type=tuple[list[str], list[int]])
                self._objects[name] = Objects(self.folder / f"{name}.items", keys, sizes)
            return self._objects[name]

    def view(self, name: str, namespace: str = "") -> View:
        """All objects of a resource, or those of a namespace."""
        objects = self.objects(name)
        if not namespace:
            return View(RESOURCES[name], objects, range(len(objects.keys)))
        prefix = f"/{namespace}"
        # A zero is what comes after a slash.
        begin, end = (bisect_left(objects.keys, prefix + after) for after in "/0")
        return View(RESOURCES[name], objects, range(begin, end), prefix)

    def zipped(self, page: Page) -> bytes:
        """The page compressed; kept in the folder when it is one that comes again."""
        if not page.plain:
            return compressed(page.body())
        where = page.view.prefix[1:] or "-"
        path = self.folder / f"{page.view.resource.name}.{page.limit}" / where / f"{page.begin}.gz"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, compressed(page.body()))
        return path.read_bytes()

    def _render(self, name: str, index: Path) -> None:
        """Write all objects, and last the index that says they are whole."""
        entries = shapes.entries(self.cluster, name)
        keys, sizes = [key for key, _ in entries], []
        path = self.folder / f"{name}.items"
        unfinished = path.with_suffix(f".{os.getpid()}")
        with unfinished.open("wb") as out:
            for begin in range(0, len(entries), _BLOCK):
                items = [render() for _, render in entries[begin : begin + _BLOCK]]
                sizes += [len(item) for item in items]
                out.write((b"," if begin else b"") + b",".join(items))
        unfinished.replace(path)
        _write(index, msgspec.msgpack.encode((keys, sizes)))

    def _compress(self, name: str) -> None:
        """Compress the pages of the usual size of a whole list, two at a time."""
        view = self.view(name)
        waiting: deque[Future[bytes]] = deque()
        with ThreadPoolExecutor(2) as pool:
            for begin in range(0, len(view.positions), self._page_size):
                end = min(begin + self._page_size, len(view.positions))
                waiting.append(pool.submit(self.zipped, Page(view, begin, end, self._page_size, REVISION)))
                if len(waiting) > _AHEAD:
                    waiting.popleft().result()


def _write(path: Path, content: bytes) -> None:
    """Write a file that is there wholly or not at all, whoever else writes it."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def _version() -> str:
    """A key that changes with the code that renders, and with the library that compresses."""
    folder = Path(__file__).parent
    code = b"".join((folder / name).read_bytes() for name in _SOURCES)
    return sha256(code + zlib.ZLIB_RUNTIME_VERSION.encode()).hexdigest()[:12]
