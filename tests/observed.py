"""Run the tool and note what it touches: `python -I -B tests/observed.py LOG WORD...`.

LOG gets a JSON array a line: what happened, then to what. Python's audit hooks see every file, process and connection, whichever
library makes it. Files that OpenSSL opens and variables that are read are no audit events: those functions are replaced.
"""

import json
import os
import ssl
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CHANGES = ("os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate")
_PROCESSES = ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system")
_SOCKETS = ("socket.bind", "socket.connect", "socket.sendmsg", "socket.sendto")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Whoever copies or goes through all variables reads none in particular.
_ALL = ("__iter__", "__or__", "__ror__", "copy")
Note = Callable[..., None]
_OPENING = threading.local()
"""The descriptor that the path of a file being opened starts from, by thread; no audit event tells it."""


def _hears(note: Note) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook. See https://docs.python.org/3/library/audit_events.html."""

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and not isinstance(args[0], int):
            how = "list" if args[2] & os.O_DIRECTORY else "write" if args[2] & _WRITES else "read"
            note(how, _path(args[0], getattr(_OPENING, "folder", -1)))
        elif event in ("os.listdir", "os.scandir"):
            note("list", _path("." if args[0] is None else args[0]))
        elif event in _CHANGES:
            note(event.removeprefix("os."), _path(args[0], args[1] if event in ("os.remove", "os.rmdir") else -1))
            if event in ("os.link", "os.rename", "os.symlink"):
                note("replace", _path(args[1]))
        elif event == "subprocess.Popen":
            note("run", *args[1])
        elif event in _PROCESSES:
            note("run", event)
        elif event in _SOCKETS:
            note(event.removeprefix("socket."), *args[1][:2])
        elif event == "socket.getaddrinfo":
            note("resolve", args[0])
        elif event == "http.client.send":
            request, *headers = bytes(args[1]).decode("latin-1").split("\r\n")
            names = sorted({header.partition(":")[0].title() for header in headers if header})
            note("ask", f"{args[0].host}:{args[0].port}", *request.split(" ")[:2], *names)

    return hear


def _path(path: str | bytes | int, folder: int = -1) -> str:
    """Return the whole path of a path or of a descriptor; `folder` is the descriptor that a path starts from, or -1."""
    if isinstance(path, int):
        return str(Path(f"/proc/self/fd/{path}").readlink())
    start = Path.cwd() if folder < 0 else Path(_path(folder))
    return os.path.normpath(start / os.fsdecode(path))


def _hear_folders() -> None:
    opened: Any = os.open

    def noted(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        _OPENING.folder = -1 if dir_fd is None else dir_fd
        try:
            descriptor: int = opened(path, flags, mode, dir_fd=dir_fd)
        finally:
            _OPENING.folder = -1
        return descriptor

    os.open = noted


def _hear_openssl(note: Note) -> None:
    def replace(name: str) -> None:
        load = getattr(ssl.SSLContext, name)

        def noted(self: ssl.SSLContext, *paths: Any, **named: Any) -> Any:
            if name == "load_default_certs":
                note("read", "certificates of the system")
            for path in (*paths, *named.values()):
                if isinstance(path, str) and "\n" not in path:
                    note("read", _path(path))
            return load(self, *paths, **named)

        setattr(ssl.SSLContext, name, noted)

    for name in ("load_cert_chain", "load_default_certs", "load_verify_locations"):
        replace(name)


def _hear_variables(note: Note) -> None:
    variables: Any = type(os.environ)
    get = variables.__getitem__

    def noted(self: Any, key: str) -> str:
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename.startswith("<frozen ") and frame.f_code.co_name not in _ALL:
            frame = frame.f_back
        if frame.f_code.co_name not in _ALL:
            note("variable", key, frame.f_code.co_filename)
        value: str = get(self, key)
        return value

    variables.__getitem__ = noted


def main() -> None:
    """Run the tool with the words behind the log's path. The log begins with where Python finds its modules."""
    path, *words = sys.argv[1:]
    sys.argv[:] = ["kubectl-cgaudit", *words]
    account = os.environ.pop("SERVICE_ACCOUNT", "")
    if account:
        # Where a pod has it nobody but root may put anything.
        from kubernetes.config import incluster_config

        incluster_config.SERVICE_TOKEN_FILENAME = f"{account}/token"
        incluster_config.SERVICE_CERT_FILENAME = f"{account}/ca.crt"
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(what: str, *about: object) -> None:
        os.write(log, (json.dumps([what, *map(str, about)]) + "\n").encode())

    note("modules", *sys.path)
    # Tab completion gives up after two seconds, which a busy machine may need to begin.
    join = threading.Thread.join
    threading.Thread.join = lambda thread, _=None: join(thread)  # type: ignore[method-assign]
    _hear_folders()
    _hear_openssl(note)
    _hear_variables(note)
    sys.addaudithook(_hears(note))
    from kubectl_cgaudit.__main__ import main as command

    command()


main()
