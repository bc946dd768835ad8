"""The client's configuration for a choice of cluster and user: tokens, exec plugins, certificates, proxies.

An id-token of the auth-provider oidc is never renewed here: an issuer may take a refresh token once only, and whoever renews
has to write the new one into the kubeconfig, as kubectl does.
"""

import base64
import importlib
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_cgaudit import temporary
from kubectl_cgaudit.collect import proxy
from kubectl_cgaudit.collect.exec_plugin import ask
from kubectl_cgaudit.collect.input import read_settings
from kubectl_cgaudit.collect.kubeconfig import LOG_IN, NEXT, Choice, Fields, not_found
from kubectl_cgaudit.collect.proxy import Proxy
from kubectl_cgaudit.errors import ClusterError

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_OWN_TOKEN = frozenset(("token", "tokenFile", "username"))
_CA = ("certificate-authority", "certificate-authority-data")
_EMBEDDED = ("certificate-authority-data", "client-certificate-data", "client-key-data")
_ENCRYPTED = (b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED")
_RENEW = "run any kubectl command to renew it, then try again"
_EARLY_SECONDS = 10
"""kubectl renews an id-token so long before its end."""


class Login(Struct, frozen=True):
    """How to reach a server, and as whom."""

    configuration: Any
    """The client's Configuration."""
    proxy: Proxy | None
    expires: float | None = None
    """When the credentials end, in seconds since 1970, where they say so."""

    def secrets(self) -> Iterator[str]:
        """Yield what is sent to prove who asks, in each form in which an answer may repeat it."""
        sent = [setting["value"] for setting in self.configuration.auth_settings().values()]
        if self.proxy:
            sent.append(self.proxy.authorization)
            yield self.proxy.password
        for value in sent:
            scheme, _, secret = value.strip().partition(" ")
            yield secret or scheme
            if scheme.lower() == "basic":
                yield base64.b64decode(secret).decode(errors="replace").partition(":")[2]


def log_in(choice: Choice) -> Login:
    """Return what a choice needs. Runs the exec plugin, if the user has one. Raises ClusterError where that cannot be done."""
    _check_cluster(choice)
    user, expires = _with_token(choice)
    embedded = _check_certificates(choice.cluster, user, choice.where)
    authorization = _authorization(user, choice.where)
    kept = {name: value for name, value in user.items() if name not in ("token", "tokenFile", "username", "password")}
    alone = {
        "current-context": "alone",
        "contexts": [{"name": "alone", "context": {"cluster": "alone", "user": "alone"}}],
        "clusters": [{"name": "alone", "cluster": choice.cluster}],
        "users": [{"name": "alone", "user": kept}],
    }
    configuration = _kubernetes("client").Configuration()
    temporary.remove_abandoned_keys()
    try:
        folder = temporary.key_folder() if embedded else None
        loader = _kubernetes("config.kube_config").KubeConfigLoader(alone, temp_file_path=folder)
        loader.load_and_set(configuration)
    except _broken() as error:
        raise ClusterError(f"the credentials of {choice.where} cannot be used: {_said(error)}; {LOG_IN}") from None
    if authorization:
        configuration.api_key["BearerToken"] = authorization
    _check_files(configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file, choice.where)
    return Login(configuration, _set_proxy(configuration, choice.cluster.get("proxy-url")), expires)


def _check_cluster(choice: Choice) -> None:
    """What the client does not check: for it the text "false" is true, and verification would be off."""
    for field, type_, what in (
        ("insecure-skip-tls-verify", bool, "neither true nor false"),
        ("tls-server-name", str, "not a name"),
    ):
        if field in choice.cluster and not isinstance(choice.cluster[field], type_):
            raise ClusterError(f"{field} of {choice.where} is {what}; correct it in the kubeconfig")
    if choice.cluster.get("insecure-skip-tls-verify"):
        # kubectl refuses both together: https://github.com/kubernetes/client-go/blob/v0.34.0/transport/transport.go
        for field in _CA:
            if field in choice.cluster:
                raise ClusterError(
                    f"{choice.where} has {field} together with insecure-skip-tls-verify, which would ignore it; "
                    "remove one of the two from the kubeconfig"
                )


def _set_proxy(configuration: Any, own: object) -> Proxy | None:
    """The proxy of the kubeconfig, for which NO_PROXY does not count, or that of the environment."""
    named = own or proxy.of_environment(configuration.host, os.environ)
    found = proxy.parsed(str(named)) if named else None
    configuration.proxy = found.url if found else None
    configuration.proxy_headers = None
    if found and found.authorization and found.url.startswith("http"):
        configuration.proxy_headers = {"proxy-authorization": found.authorization}
    # The client reads it otherwise than kubectl does.
    configuration.no_proxy = None
    return found


def in_cluster() -> Login:
    """Return the login of the service account of the pod this runs in. Its server is always asked with https."""
    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        raise not_found()
    configuration = _kubernetes("client").Configuration()
    try:
        _kubernetes("config").load_incluster_config(client_configuration=configuration)
    except _broken() as error:
        raise ClusterError(
            f"no kubeconfig found, and the pod's service account cannot be used: {_said(error)}; {NEXT}"
        ) from None
    return Login(configuration, _set_proxy(configuration, None))


def own_namespace() -> str:
    """The namespace of the pod this runs in; empty if it is not said."""
    try:
        return _NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def _with_token(choice: Choice) -> tuple[Fields, float | None]:
    """The user with what its token file or plugin gives, and when that ends: the loader would only log that a plugin failed."""
    user = choice.user
    if _OWN_TOKEN & {*user}:
        # For kubectl these count before what a provider gives.
        user = {name: value for name, value in user.items() if name != "auth-provider"}
    if "tokenFile" in user:
        try:
            token = read_settings(Path(user["tokenFile"])).decode().strip()
        except (OSError, ValueError) as error:
            raise ClusterError(f"the tokenFile of {choice.where} cannot be read: {_said(error)}; {LOG_IN}") from None
        if not token:
            # The client would ask as nobody, and what nobody may not read is no matter of permissions.
            raise ClusterError(f"the tokenFile of {choice.where} is empty; {LOG_IN}")
        return user | {"token": token}, _end(token)
    if "token" in user:
        return user, _end(str(user["token"]))
    if _is_oidc(user):
        token = _id_token(user["auth-provider"]["config"], choice.where, time.time())
        return {name: value for name, value in user.items() if name != "auth-provider"} | {"token": token}, None
    if "auth-provider" in user:
        # kubectl has no other since 1.26. The client still has gcp: it would run a command that the entry names, or ask Google.
        raise ClusterError(f"the auth-provider of {choice.where} gave no token; log in again, or use an exec plugin")
    if "exec" not in user:
        return user, None
    credential = ask(user["exec"], choice.cluster, choice.where)
    given: Fields = {}
    if credential.token:
        given["token"] = credential.token
    certificate, key = credential.client_certificate_data, credential.client_key_data
    if certificate and key:
        given["client-certificate-data"] = base64.b64encode(certificate.encode()).decode()
        given["client-key-data"] = base64.b64encode(key.encode()).decode()
    ends = credential.expiration_timestamp
    expires = ends.timestamp() if ends else None
    return {name: value for name, value in user.items() if name != "exec"} | given, expires


def _authorization(user: Fields, where: str) -> str:
    """The header that proves who asks; empty where none does. Logins are sent in UTF-8, as Go does it."""
    if "token" in user:
        return f"Bearer {user['token']}"
    if "username" not in user:
        return ""
    name, password = user["username"], user.get("password", "")
    if not (isinstance(name, str) and isinstance(password, str)):
        raise ClusterError(f"the username or password of {where} is no text; {LOG_IN}")
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


def _is_oidc(user: Fields) -> bool:
    provider = user.get("auth-provider")
    return isinstance(provider, dict) and provider.get("name") == "oidc" and isinstance(provider.get("config"), dict)


class _Claims(Struct):
    exp: float | None = None


def _id_token(config: Fields, where: str, now: float) -> str:
    """The id-token as it stands in the kubeconfig. Raises ClusterError where there is none, or it ends before `now`."""
    given = str(config.get("id-token") or "")
    if not given:
        raise ClusterError(f"the auth-provider of {where} has no id-token; {_RENEW}")
    ends = _end(given)
    if ends is not None and ends <= now + _EARLY_SECONDS:
        raise ClusterError(
            f"the id-token of {where} ends at {moment(ends)}, and this machine's clock is at {moment(now)}; "
            f"correct the clock, or {_RENEW}"
        )
    return given


def _end(token: str) -> float | None:
    """When a token ends; None where that cannot be seen, and the server has to judge."""
    payload = token.split(".")[1:2]
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(payload[0] + "=="), type=_Claims).exp
    except (IndexError, ValueError, RecursionError):
        return None


def moment(seconds: float) -> str:
    """Return a time, given in seconds since 1970, in UTC and to the second."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "a time beyond the calendar"


def _check_certificates(cluster: Fields, user: Fields, where: str) -> bool:
    """Return whether something embedded has to be written to a file, for TLS to read.

    Raises ClusterError where a certificate has no key, or where nothing can be written.
    """
    for name in ("client-certificate", "client-certificate-data"):
        if name in user and not {"client-key", "client-key-data"} & {*user}:
            raise ClusterError(f"{where} has {name} and no client-key; add client-key or client-key-data to its user")
    embedded = any(name in fields for fields in (cluster, user) for name in _EMBEDDED)
    if embedded:
        try:
            tempfile.gettempdir()
        except FileNotFoundError:
            raise ClusterError(
                f"the certificates of {where} stand in no file and need a temporary folder, and none can be written to; "
                "set TMPDIR to one that can"
            ) from None
    return embedded


def _check_files(authority: str | None, certificate: str | None, key: str | None, where: str) -> None:
    """Raises ClusterError for a file that cannot be read, and for an encrypted key: TLS would ask for its passphrase."""
    files = {"certificate-authority": authority, "client-certificate": certificate, "client-key": key}
    for name, path in files.items():
        try:
            data = read_settings(Path(path)) if path else b""
        except OSError as error:
            why = error.strerror or "unreadable"
            raise ClusterError(
                f"the {name} {path} of {where} cannot be read: {why}; make it readable for you, or correct the kubeconfig"
            ) from None
        if name == "client-key" and any(mark in data for mark in _ENCRYPTED):
            raise ClusterError(
                f"the client-key of {where} is encrypted, and kubectl cannot use it either; decrypt it first, as with: "
                "openssl pkey -in KEY -out DECRYPTED"
            )


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
    words = " ".join((getattr(error, "strerror", None) or str(error)).split())
    return "".join(c for c in words if c.isprintable())[:200].rstrip(".")
