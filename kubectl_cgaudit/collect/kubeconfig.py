"""Which cluster and user are meant, as kubectl decides it: --kubeconfig, $KUBECONFIG, ~/.kube/config.

Over http:// kubectl reads neither the user's credentials nor the cluster's CA, and sends whom to impersonate all the same:
https://github.com/kubernetes/client-go/blob/v0.34.0/tools/clientcmd/client_config.go (`ClientConfig`).
"""

import base64
import binascii
import contextlib
import os
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from kubectl_cgaudit import yaml_reader
from kubectl_cgaudit.collect.input import read_settings
from kubectl_cgaudit.errors import ClusterError
from kubectl_cgaudit.text import named

Fields = dict[str, Any]
Section = Literal["contexts", "clusters", "users"]
NEXT = "give --kubeconfig FILE, set KUBECONFIG, or audit saved objects with -f FILE"
LOG_IN = "log in again, or correct the kubeconfig"
_LISTED = 10
_CLUSTER_FILES = ("certificate-authority",)
_USER_FILES = ("client-certificate", "client-key", "tokenFile")
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
_DATA = ("certificate-authority-data", "client-certificate-data", "client-key-data")


class Connection(Struct, frozen=True):
    """What kubectl's flags say about the cluster and who asks it."""

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    as_user: str | None = None
    as_groups: tuple[str, ...] = ()
    timeout_seconds: float | None = None
    home: str = ""
    """The namespace to start from; empty for that of the context."""


class Choice(Struct, frozen=True):
    """A cluster and a user of the kubeconfig, their file paths made absolute."""

    where: str
    """How the choice is named to the user: `context NAME` or `cluster NAME`."""
    cluster: Fields
    user: Fields
    namespace: str
    """The context's; empty if it names none."""
    encrypted: bool = True
    """Whether the server speaks https. Where it does not, `user` has no credentials and `cluster` no CA."""
    named: dict[str, str] = {}
    """The `name` of the cluster and the `context`, as far as the kubeconfig says them."""


class _Merged(Struct, frozen=True):
    contexts: dict[str, Fields]
    clusters: dict[str, Fields]
    users: dict[str, Fields]
    current: list[str]


def choose(connection: Connection) -> Choice | None:
    """The cluster and user the flags and kubeconfig files select; None when no file has any."""
    merged = _merge(_paths(connection.kubeconfig))
    if not (merged.contexts or merged.clusters):
        if connection.kubeconfig:
            raise ClusterError(f"{connection.kubeconfig} names no cluster; {NEXT}")
        if connection.context or connection.cluster or connection.user:
            raise not_found()
        return None
    context_name = connection.context or (merged.current[0] if merged.current else "")
    context = _pick("context", context_name, merged.contexts) if context_name else {}
    cluster_name = connection.cluster or text(context.get("cluster"))
    user_name = connection.user or text(context.get("user"))
    if not cluster_name and not context_name:
        raise ClusterError(
            f"the kubeconfig has no current-context ({_there_are(merged.contexts)}); choose one with --context NAME"
        )
    cluster = _pick("cluster", cluster_name, merged.clusters)
    server = _server(cluster_name, text(cluster.get("server")))
    user = _pick("user", user_name, merged.users) if user_name else {}
    _check_base64(f"cluster {cluster_name!r}", cluster)
    _check_base64(f"user {user_name!r}", user)
    encrypted = server.startswith("https:")
    if not encrypted:
        cluster = _only(cluster, ("proxy-url",))
        user = _only(user, _IMPERSONATION)
    where = f"context {context_name}" if context_name else f"cluster {cluster_name}"
    namespace = text(context.get("namespace"))
    named = {key: name for key, name in (("name", cluster_name), ("context", context_name)) if name}
    return Choice(where, cluster | {"server": server}, user, namespace, encrypted, named)


def _only(fields: Fields, names: Iterable[str]) -> Fields:
    return {name: fields[name] for name in names if name in fields}


def names(explicit: str | None, section: Section) -> list[str]:
    """The names of a section, of all kubeconfig files or of `explicit` alone. Raises ClusterError."""
    merged = _merge(_paths(explicit))
    tables = {"contexts": merged.contexts, "clusters": merged.clusters, "users": merged.users}
    return list(tables[section])


def files(explicit: str | None) -> tuple[str, ...]:
    """The kubeconfig files, all or `explicit` alone, and what they name: certificates, keys, tokens. Raises ClusterError."""
    paths = _paths(explicit)
    merged = _merge(paths)
    kinds = ((merged.clusters, _CLUSTER_FILES), (merged.users, _USER_FILES))
    named_in = [fields[key] for table, keys in kinds for fields in table.values() for key in keys if key in fields]
    return (*map(str, paths), *named_in)


def not_found() -> ClusterError:
    """The error for when neither a kubeconfig nor a service account is there."""
    looked = ", ".join(map(str, _paths(None)))
    nowhere = "KUBECONFIG names no file" if os.environ.get("KUBECONFIG") else "there is no home folder to look in"
    seen = f"looked at {looked}" if looked else nowhere
    return ClusterError(f"no kubeconfig found ({seen}); {NEXT}")


def _paths(explicit: str | None) -> list[Path]:
    if explicit:
        if not _exists(Path(explicit)):
            raise ClusterError(f"the kubeconfig {explicit} does not exist; {NEXT}")
        return [Path(explicit)]
    listed = os.environ.get("KUBECONFIG")
    if listed:
        return [Path(path) for path in listed.split(os.pathsep) if path]
    try:
        return [Path.home() / ".kube" / "config"]
    except RuntimeError:
        # Neither HOME nor an entry in passwd, as in many pods: the service account may do.
        return []


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise ClusterError(f"the kubeconfig {path} cannot be read: {error.strerror or error}; {NEXT}") from None


def _merge(paths: list[Path]) -> _Merged:
    # Not the client's KubeConfigMerger: there the last current-context wins, in kubectl the first.
    merged = _Merged(contexts={}, clusters={}, users={}, current=[])
    for path in paths:
        if not _exists(path):
            continue
        config = _load(path)
        folder = path.absolute().parent
        _add(merged.contexts, _section(config, "contexts", path), "context", folder, ())
        _add(merged.clusters, _section(config, "clusters", path), "cluster", folder, _CLUSTER_FILES)
        _add(merged.users, _section(config, "users", path), "user", folder, _USER_FILES)
        if config.get("current-context"):
            merged.current.append(text(config["current-context"]))
    return merged


def _load(path: Path) -> Fields:
    try:
        config = _parsed(read_settings(path) if path.is_file() else _of_pipe(path))
    except OSError as error:
        raise ClusterError(f"the kubeconfig {path} cannot be read: {error.strerror or 'unreadable'}; {NEXT}") from None
    except yaml_reader.YamlError as error:
        raise ClusterError(
            f"the kubeconfig {path} is not valid YAML{error.where}: {error.problem}; correct it, or {NEXT}"
        ) from None
    if config is not None and not isinstance(config, dict):
        raise ClusterError(f"{path} is not a kubeconfig; {NEXT}")
    return config or {}


@cache
def _of_pipe(path: Path) -> bytes:
    """Return what came through a pipe, as of `--kubeconfig <(command)`: it comes once, and is asked for several times."""
    return read_settings(path)


def _parsed(data: bytes) -> Any:
    """What a file holds: JSON, which may have tabs that YAML has not, or YAML."""
    if data.lstrip()[:1] == b"{":
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(data)
    return yaml_reader.document(data, yaml_reader.KUBECONFIG)


def _section(config: Fields, section: Section, path: Path) -> list[Fields]:
    """The entries of a section. Raises ClusterError where they are malformed, or two have one name.

    kubectl refuses a file with two entries of one name, whichever are used; of several files the first one's entry counts:
    https://github.com/kubernetes/client-go/blob/v0.34.0/tools/clientcmd/api/v1/conversion.go
    """
    entries = config.get(section) or []
    if not isinstance(entries, list) or not all(isinstance(e, dict) and text(e.get("name")) for e in entries):
        raise ClusterError(f"{section} of the kubeconfig {path} is not a list of named entries; correct it, or {NEXT}")
    for name, times in Counter(text(entry["name"]) for entry in entries).items():
        if times > 1:
            raise ClusterError(
                f"{section} of the kubeconfig {path} has {times} entries named {name!r}; keep one of them"
            )
    return entries


def _add(table: dict[str, Fields], entries: list[Fields], key: str, folder: Path, files: tuple[str, ...]) -> None:
    for entry in entries:
        inner = entry.get(key)
        kept = inner.items() if isinstance(inner, dict) else ()
        fields = {name: value for name, value in kept if value not in (None, "")}
        for name in files:
            if name in fields:
                fields[name] = str(folder / text(fields[name]))
        plugin = fields.get("exec", {}) if key == "user" else {}
        command = plugin.get("command") if isinstance(plugin, dict) else None
        if isinstance(command, str) and "/" in command:
            fields["exec"] = plugin | {"command": str(folder / command)}
        table.setdefault(text(entry["name"]), fields)


def text(value: object) -> str:
    """A name, which YAML may have taken for a number."""
    return "" if value is None else str(value)


def _pick(what: str, name: str, table: dict[str, Fields]) -> Fields:
    if name not in table:
        raise ClusterError(
            f"there is no {what} {name!r} in the kubeconfig ({_there_are(table)}); choose another with --{what} NAME"
        )
    return table[name]


def _server(cluster_name: str, server: str) -> str:
    """The URL of the API server, its scheme in small letters. Raises ClusterError for a URL that no server can have."""
    try:
        parts = urlsplit(server)
        is_url = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or not server.isprintable() or " " in server:
        raise ClusterError(f"cluster {cluster_name!r} of the kubeconfig has no https:// server; correct its entry")
    if "@" in parts.netloc:
        raise ClusterError(f"the server of cluster {cluster_name!r} has a login in its URL; move it to a user's entry")
    return parts.scheme + server[len(parts.scheme) :]


def _there_are(names: Iterable[str]) -> str:
    every = sorted(names)
    return f"there are: {named(every, _LISTED)}" if every else "it has none"


def _check_base64(whose: str, fields: Fields) -> None:
    for key in _DATA:
        if not _is_base64("".join(text(fields.get(key)).split())):
            raise ClusterError(f"{key} of {whose} in the kubeconfig is not base64; {LOG_IN}")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
