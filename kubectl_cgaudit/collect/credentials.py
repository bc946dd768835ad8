"""The client's configuration for a choice of cluster and user: tokens, exec plugins, certificates, proxies."""

import base64
import importlib
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kubectl_cgaudit import temporary
from kubectl_cgaudit.collect import certificates, oidc, proxy
from kubectl_cgaudit.collect.exec_plugin import ask
from kubectl_cgaudit.collect.input import read_settings
from kubectl_cgaudit.collect.kubeconfig import LOG_IN, NEXT, Choice, Fields, not_found
from kubectl_cgaudit.errors import ClusterError

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_OWN_TOKEN = frozenset(("token", "tokenFile", "username"))


def configure(choice: Choice) -> Any:
    """The client's Configuration for a choice. Runs the exec plugin, if the user has one."""
    _check_types(choice)
    user = _with_token(choice)
    embedded = certificates.check(choice.cluster, user, choice.where)
    alone = {
        "current-context": "alone",
        "contexts": [{"name": "alone", "context": {"cluster": "alone", "user": "alone"}}],
        "clusters": [{"name": "alone", "cluster": choice.cluster}],
        "users": [{"name": "alone", "user": user}],
    }
    configuration = _kubernetes("client").Configuration()
    temporary.remove_abandoned_keys()
    try:
        folder = temporary.key_folder() if embedded else None
        loader = _kubernetes("config.kube_config").KubeConfigLoader(alone, temp_file_path=folder)
        loader.load_and_set(configuration)
    except _broken() as error:
        raise ClusterError(f"the credentials of {choice.where} cannot be used: {_said(error)}; {LOG_IN}") from None
    paths = configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file
    certificates.check_files(*paths, choice.where)
    _set_proxy(configuration, choice.cluster.get("proxy-url"))
    return configuration


def _check_types(choice: Choice) -> None:
    """What the client does not check: for it the text "false" is true, and verification would be off."""
    for field, type_, what in (
        ("insecure-skip-tls-verify", bool, "neither true nor false"),
        ("tls-server-name", str, "not a name"),
    ):
        if field in choice.cluster and not isinstance(choice.cluster[field], type_):
            raise ClusterError(f"{field} of {choice.where} is {what}; correct it in the kubeconfig")


def _set_proxy(configuration: Any, own: object) -> None:
    """The proxy of the kubeconfig, for which NO_PROXY does not count, or that of the environment; urllib3 takes neither
    scheme nor password from its URL.
    """
    configuration.proxy = own or proxy.of_environment(configuration.host, os.environ)
    # The client reads it otherwise than kubectl does.
    configuration.no_proxy = None
    if not configuration.proxy:
        return
    configuration.proxy = str(configuration.proxy)
    if "://" not in configuration.proxy:
        configuration.proxy = f"http://{configuration.proxy}"
    try:
        login, at, _ = urlsplit(configuration.proxy).netloc.rpartition("@")
    except ValueError as error:
        raise ClusterError(f"the proxy cannot be used: {_said(error)}; correct proxy-url or HTTPS_PROXY") from None
    if urlsplit(configuration.proxy).scheme == "socks5":
        # With a scheme of its own urllib3 leaves it to the proxy what a name means, as kubectl always does.
        configuration.proxy = f"socks5h{configuration.proxy[len('socks5') :]}"
    elif at:
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
            f"no kubeconfig found, and the pod's service account cannot be used: {_said(error)}; {NEXT}"
        ) from None
    _set_proxy(configuration, None)
    return configuration


def own_namespace() -> str:
    """The namespace of the pod this runs in; empty if it is not said."""
    try:
        return _NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def _with_token(choice: Choice) -> Fields:
    """The user with what its token file or exec plugin gives; the loader would only log that a plugin failed."""
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
        return user | {"token": token}
    if "token" in user:
        return user
    if _is_oidc(user):
        token = oidc.token(user["auth-provider"]["config"], choice.where, time.time())
        return {name: value for name, value in user.items() if name != "auth-provider"} | {"token": token}
    if "auth-provider" in user:
        # kubectl has no other since 1.26. The client still has gcp: it would run a command that the entry names, or ask Google.
        raise ClusterError(f"the auth-provider of {choice.where} gave no token; log in again, or use an exec plugin")
    if "exec" not in user:
        return user
    credential = ask(user["exec"], choice.cluster, choice.where)
    given: Fields = {}
    if credential.token:
        given["token"] = credential.token
    certificate, key = credential.client_certificate_data, credential.client_key_data
    if certificate and key:
        given["client-certificate-data"] = base64.b64encode(certificate.encode()).decode()
        given["client-key-data"] = base64.b64encode(key.encode()).decode()
    return {name: value for name, value in user.items() if name != "exec"} | given


def _is_oidc(user: Fields) -> bool:
    provider = user.get("auth-provider")
    return isinstance(provider, dict) and provider.get("name") == "oidc" and isinstance(provider.get("config"), dict)


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
