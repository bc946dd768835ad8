"""Find the cluster, as kubectl does: --kubeconfig, $KUBECONFIG, ~/.kube/config, the in-cluster service account."""

import base64
import binascii
import importlib
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from msgspec import Struct

from kubectl_cgaudit.errors import ClusterError

Fields = dict[str, Any]
_NEXT = "give --kubeconfig FILE, set KUBECONFIG, or audit saved objects with -f FILE"
_LOG_IN = "log in again, or correct the kubeconfig"
_LISTED = 10
_CLUSTER_FILES = ("certificate-authority",)
_USER_FILES = ("client-certificate", "client-key", "tokenFile")
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


class Choice(Struct, frozen=True):
    """A cluster and a user of the kubeconfig, their file paths made absolute."""

    where: str
    """How the choice is named to the user: `context NAME` or `cluster NAME`."""
    cluster: Fields
    user: Fields


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
            raise ClusterError(f"{connection.kubeconfig} names no cluster; {_NEXT}")
        if connection.context or connection.cluster or connection.user:
            raise not_found()
        return None
    context_name = connection.context or (merged.current[0] if merged.current else "")
    context = _pick("context", context_name, merged.contexts) if context_name else {}
    cluster_name = connection.cluster or _text(context.get("cluster"))
    user_name = connection.user or _text(context.get("user"))
    if not cluster_name and not context_name:
        raise ClusterError(
            f"the kubeconfig has no current-context ({_there_are(merged.contexts)}); choose one with --context NAME"
        )
    cluster = _pick("cluster", cluster_name, merged.clusters)
    server = _text(cluster.get("server"))
    if not _is_url(server):
        raise ClusterError(f"cluster {cluster_name!r} of the kubeconfig has no https:// server; correct its entry")
    user = _pick("user", user_name, merged.users) if user_name else {}
    _check_base64(f"cluster {cluster_name!r}", cluster)
    _check_base64(f"user {user_name!r}", user)
    where = f"context {context_name}" if context_name else f"cluster {cluster_name}"
    return Choice(where=where, cluster=cluster, user=user)


def not_found() -> ClusterError:
    """The error for when neither a kubeconfig nor a service account is there."""
    looked = ", ".join(map(str, _paths(None)))
    return ClusterError(f"no kubeconfig found (looked at {looked}); {_NEXT}")


def _paths(explicit: str | None) -> list[Path]:
    if explicit:
        if not Path(explicit).exists():
            raise ClusterError(f"the kubeconfig {explicit} does not exist; {_NEXT}")
        return [Path(explicit)]
    listed = os.environ.get("KUBECONFIG")
    if listed:
        return [Path(path) for path in listed.split(os.pathsep) if path]
    return [Path.home() / ".kube" / "config"]


def _merge(paths: list[Path]) -> _Merged:
    # Not the client's KubeConfigMerger: there the last current-context wins, in kubectl the first.
    merged = _Merged(contexts={}, clusters={}, users={}, current=[])
    for path in paths:
        if not path.exists():
            continue
        config = _load(path)
        folder = path.absolute().parent
        _add(merged.contexts, _section(config, "contexts", path), "context", folder, ())
        _add(merged.clusters, _section(config, "clusters", path), "cluster", folder, _CLUSTER_FILES)
        _add(merged.users, _section(config, "users", path), "user", folder, _USER_FILES)
        if config.get("current-context"):
            merged.current.append(_text(config["current-context"]))
    return merged


def _load(path: Path) -> Fields:
    try:
        config = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ClusterError(f"the kubeconfig {path} cannot be read: {error.strerror or 'unreadable'}; {_NEXT}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        at = f" (line {mark.line + 1})" if mark else ""
        raise ClusterError(f"the kubeconfig {path} is not valid YAML{at}; correct it, or {_NEXT}") from None
    if config is not None and not isinstance(config, dict):
        raise ClusterError(f"{path} is not a kubeconfig; {_NEXT}")
    return config or {}


def _section(config: Fields, section: str, path: Path) -> list[Fields]:
    entries = config.get(section) or []
    if not isinstance(entries, list) or not all(isinstance(e, dict) and _text(e.get("name")) for e in entries):
        raise ClusterError(f"{section} of the kubeconfig {path} is not a list of named entries; correct it, or {_NEXT}")
    return entries


def _add(table: dict[str, Fields], entries: list[Fields], key: str, folder: Path, files: tuple[str, ...]) -> None:
    for entry in entries:
        inner = entry.get(key)
        kept = inner.items() if isinstance(inner, dict) else ()
        fields = {name: value for name, value in kept if value not in (None, "")}
        for name in files:
            if name in fields:
                fields[name] = str(folder / _text(fields[name]))
        plugin = fields.get("exec") if key == "user" else None
        if isinstance(plugin, dict) and "/" in _text(plugin.get("command")):
            fields["exec"] = plugin | {"command": str(folder / plugin["command"])}
        table.setdefault(_text(entry["name"]), fields)


def _text(value: object) -> str:
    """A name, which YAML may have taken for a number."""
    return "" if value is None else str(value)


def _pick(what: str, name: str, table: dict[str, Fields]) -> Fields:
    if name not in table:
        raise ClusterError(
            f"there is no {what} {name!r} in the kubeconfig ({_there_are(table)}); choose another with --{what} NAME"
        )
    return table[name]


def _is_url(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _there_are(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return f"there are: {', '.join(every[:_LISTED])}{more}" if every else "there is none"


def _check_base64(whose: str, fields: Fields) -> None:
    for key in _DATA:
        if not _is_base64("".join(_text(fields.get(key)).split())):
            raise ClusterError(f"{key} of {whose} in the kubeconfig is not base64; {_LOG_IN}")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def configure(choice: Choice) -> Any:
    """The client's Configuration for a choice. Runs the exec plugin, if the user has one."""
    user = _with_token(choice)
    alone = {
        "current-context": "alone",
        "contexts": [{"name": "alone", "context": {"cluster": "alone", "user": "alone"}}],
        "clusters": [{"name": "alone", "cluster": choice.cluster}],
        "users": [{"name": "alone", "user": user}],
    }
    configuration = _kubernetes("client").Configuration()
    try:
        _kubernetes("config.kube_config").KubeConfigLoader(alone).load_and_set(configuration)
    except _broken() as error:
        raise ClusterError(f"the credentials of {choice.where} cannot be used: {_said(error)}; {_LOG_IN}") from None
    if "auth-provider" in user and not configuration.auth_settings():
        raise ClusterError(f"the auth-provider of {choice.where} gave no token; log in again, or use an exec plugin")
    if "proxy-url" in choice.cluster:
        # For kubectl NO_PROXY restricts the proxies of the environment only, and those never serve this machine.
        configuration.no_proxy = None
    elif _is_local(configuration.host):
        configuration.proxy = None
    _complete_proxy(configuration)
    return configuration


def _complete_proxy(configuration: Any) -> None:
    """Scheme and password of the proxy's URL, which urllib3 does not take from there."""
    if not configuration.proxy:
        return
    if "://" not in configuration.proxy:
        configuration.proxy = f"http://{configuration.proxy}"
    login, at, _ = urlsplit(configuration.proxy).netloc.rpartition("@")
    if at:
        make_headers = importlib.import_module("urllib3").make_headers
        configuration.proxy_headers = make_headers(proxy_basic_auth=unquote(login))


def in_cluster() -> Any:
    """The client's Configuration for the service account of the pod this runs in."""
    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        raise not_found()
    configuration = _kubernetes("client").Configuration()
    try:
        _kubernetes("config").load_incluster_config(client_configuration=configuration)
    except _broken() as error:
        raise ClusterError(
            f"no kubeconfig found, and the pod's service account cannot be used: {_said(error)}; {_NEXT}"
        ) from None
    _complete_proxy(configuration)
    return configuration


def _with_token(choice: Choice) -> Fields:
    """The user with what its token file or exec plugin gives; the loader would only log that a plugin failed."""
    user = choice.user
    if "tokenFile" in user:
        try:
            return user | {"token": Path(user["tokenFile"]).read_text(encoding="utf-8").strip()}
        except (OSError, ValueError) as error:
            raise ClusterError(f"the tokenFile of {choice.where} cannot be read: {_said(error)}; {_LOG_IN}") from None
    if "exec" not in user or "token" in user:
        return user
    status = _run_plugin(user["exec"], choice)
    given: Fields = {}
    if status.get("token"):
        given["token"] = status["token"]
    if status.get("clientCertificateData") and status.get("clientKeyData"):
        given["client-certificate-data"] = base64.b64encode(status["clientCertificateData"].encode()).decode()
        given["client-key-data"] = base64.b64encode(status["clientKeyData"].encode()).decode()
    if not given:
        raise ClusterError(f"the exec plugin of {choice.where} gave neither token nor certificate; {_LOG_IN}")
    return {name: value for name, value in user.items() if name != "exec"} | given


def _run_plugin(plugin: Fields, choice: Choice) -> Fields:
    node = _kubernetes("config.kube_config").ConfigNode
    command = plugin.get("command") if isinstance(plugin, dict) else None
    try:
        run = _kubernetes("config.exec_provider").ExecProvider
        status: Fields = run(node("exec", plugin), None, node("cluster", choice.cluster)).run()
        status.get("token")
    except FileNotFoundError:
        hint = " ".join(_text(plugin.get("installHint")).split())[:200]
        raise ClusterError(
            f"the exec plugin {command} of {choice.where} is not installed; {hint or 'install it, then try again'}"
        ) from None
    except _broken() as error:
        raise ClusterError(f"the exec plugin {command} of {choice.where} failed: {_said(error)}; {_LOG_IN}") from None
    return status


def _kubernetes(module: str) -> Any:
    """A module of the client, which takes half a second to import and is typed in part only."""
    return importlib.import_module(f"kubernetes.{module}")


def _broken() -> tuple[type[Exception], ...]:
    """What the client raises over credentials it cannot use."""
    own = (_kubernetes("client").ApiException, _kubernetes("config").ConfigException)
    oauth = importlib.import_module("oauthlib.oauth2").OAuth2Error
    transport = importlib.import_module("urllib3.exceptions").HTTPError
    return (*own, oauth, transport, OSError, ValueError, LookupError, TypeError, AttributeError)


def _said(error: Exception) -> str:
    if isinstance(error, (LookupError, TypeError, AttributeError)):
        return "a field is missing or has the wrong type"
    text = " ".join((getattr(error, "strerror", None) or str(error)).split())
    return "".join(c for c in text if c.isprintable())[:200].rstrip(".")


def _is_local(url: str) -> bool:
    name = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
