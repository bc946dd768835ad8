"""Connection pools that accept the certificates that kubectl accepts."""

import ssl
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from kubectl_cgaudit.collect.credentials import Login
from kubectl_cgaudit.collect.http import note_connection
from kubectl_cgaudit.collect.kubeconfig import LOG_IN
from kubectl_cgaudit.collect.proxy import CORRECT
from kubectl_cgaudit.errors import ClusterError


def to_server(login: Login) -> Any:
    """The pool to an API server. Raises ClusterError for a proxy that cannot be used."""
    import urllib3
    from kubernetes.client import ApiClient

    configuration = login.configuration
    # The caller reports `unverified` once; urllib3 would warn on every request.
    warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
    try:
        pool = ApiClient(configuration).rest_client.pool_manager
    except (ImportError, ValueError, urllib3.exceptions.HTTPError) as error:
        missing = isinstance(error, ImportError)
        why = "the Python package PySocks is not installed" if missing else "its URL is malformed"
        raise ClusterError(f"the proxy {host_of(configuration.proxy or '')} cannot be used: {why}; {CORRECT}") from None
    socks = pool.connection_pool_kw.get("_socks_options")
    if socks and login.proxy:
        socks["username"], socks["password"] = login.proxy.user or None, login.proxy.password or None
    _note_connections(pool)
    if configuration.verify_ssl and configuration.ssl_ca_cert:
        # Python 3.13 refuses cluster CAs without key identifiers (EKS, old kubeadm), which kubectl accepts.
        context = urllib3.util.ssl_.create_urllib3_context()
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        pool.connection_pool_kw["ssl_context"] = context
    return pool


def to_kubelets(configuration: Any, insecure: bool) -> Callable[[], Any]:
    """What makes a pool to a kubelet. Each needs its own: one for all would close the connections of those asked longest ago.

    The CA of the cluster vouches for them, or nobody if the caller or the kubeconfig verifies nothing. Raises ClusterError
    when the certificates of the kubeconfig cannot be used.
    """
    import urllib3

    verify = configuration.verify_ssl and not insecure
    context = urllib3.util.ssl_.create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verify else ssl.CERT_NONE)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # As above.
    try:
        if verify and configuration.ssl_ca_cert:
            context.load_verify_locations(configuration.ssl_ca_cert)
        elif verify:
            context.load_default_certs()
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        raise ClusterError(
            f"the certificates of the kubeconfig cannot be used: {error.strerror or error}; {LOG_IN}"
        ) from None

    def pool() -> Any:
        made = urllib3.PoolManager(num_pools=1, ssl_context=context, cert_reqs=context.verify_mode.name)
        _note_connections(made)
        return made

    return pool


def _note_connections(manager: Any) -> None:
    """Let every attempt at a request know its connection."""
    manager.pool_classes_by_scheme = {
        scheme: _noting(pool_class) for scheme, pool_class in manager.pool_classes_by_scheme.items()
    }


@cache
def _noting(pool_class: type[Any]) -> type[Any]:
    class Noting(pool_class):  # type: ignore[misc]
        def _get_conn(self, timeout: float | None = None) -> Any:
            connection = super()._get_conn(timeout)
            note_connection(connection)
            return connection

    return Noting


def host_of(url: str) -> str:
    """Host and port of a URL, without the login that may stand in it."""
    return urlsplit(url).netloc.rpartition("@")[2]
