"""What went wrong with a request, in one sentence that ends with what to do next."""

import errno
import socket
import ssl

from kubectl_cgaudit.errors import ClusterError

CHECK = "check the server in the kubeconfig and the network (VPN, proxy, firewall)"
UNTRUSTED = "its TLS certificate is not trusted"


class RequestError(ClusterError):
    """A request without a usable answer.

    `status` is 0 where there was none; `why` is the reason alone; `silent` says that a whole timeout went by.
    """

    def __init__(self, message: str, why: str, status: int = 0, *, silent: bool = False) -> None:
        super().__init__(message)
        self.why = why
        self.status = status
        self.silent = silent


class UnreachableError(RequestError):
    """No connection: another request to the same server will fail as this one did."""


def excerpt(body: bytes) -> str:
    """The first 60 bytes of a body, as text."""
    return body[:60].decode("utf-8", "replace")


def printable(text: str, limit: int) -> str:
    """A server's text in one harmless line."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line[:limit])


def no_answer(error: BaseException, host: str, seconds: float | None) -> RequestError:
    """The error for a request without an answer; `seconds` is how long was waited once there was a connection."""
    causes = _causes(error)
    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    timed_out = any(isinstance(cause, TimeoutError) for cause in causes)
    if isinstance(tls, ssl.SSLCertVerificationError):
        why = f"{UNTRUSTED}: {tls.verify_message.rstrip('.')}"
        step = "check certificate-authority and tls-server-name in the kubeconfig"
    elif tls is not None:
        why = f"TLS failed: {(tls.reason or tls.strerror or 'unknown').replace('_', ' ').lower()}"
        step = "check that the server speaks HTTPS, and the certificates and keys in the kubeconfig"
    elif any(isinstance(cause, socket.gaierror) for cause in causes):
        why, step = "its name cannot be resolved", CHECK
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        why, step = "connection refused", "check that it runs and the port in the kubeconfig is right"
    elif not timed_out and any(map(_is_of_a_closed_connection, causes)):
        why, step = "the connection was closed before an answer came", CHECK
    elif not timed_out:
        texts = [str(getattr(cause, "strerror", "") or cause) for cause in causes]
        why, step = printable(texts[-1], 200), CHECK
    elif seconds is None:
        why, step = "no connection within a few seconds", f"{CHECK}, or give it longer with --request-timeout"
    else:
        why, step = f"no answer within {seconds:g} s", "try again with a longer --request-timeout"
    return RequestError(f"{host} cannot be asked: {why}; {step}", why, silent=seconds is not None)


def _is_of_a_closed_connection(error: BaseException) -> bool:
    # A reset that comes before the TLS handshake is seen as no connection.
    return isinstance(error, ConnectionError) or getattr(error, "errno", None) == errno.ENOTCONN


def _causes(error: BaseException | None) -> list[BaseException]:
    """The error and those it arose from; urllib3 keeps them in three places."""
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        cause = waiting.pop()
        if isinstance(cause, BaseException) and cause not in found:
            found.append(cause)
            waiting += [cause.__cause__, cause.__context__, *cause.args]
    return found
