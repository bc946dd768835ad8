"""Why there is no answer, in one harmless line."""

import errno
import socket
import ssl

import pytest

from kubectl_cgaudit.collect import failure


def tls(reason: str | None, strerror: str | None = None) -> ssl.SSLError:
    error = ssl.SSLError(1, strerror) if strerror else ssl.SSLError()
    error.reason = reason  # type: ignore[misc]
    return error


@pytest.mark.parametrize(
    ("error", "seconds", "why"),
    [
        (tls("WRONG_VERSION_NUMBER", "text"), 1.0, "TLS failed: wrong version number"),
        (tls(None, "some_text"), 1.0, "TLS failed: some text"),
        (tls(None), 1.0, "TLS failed: unknown"),
        (socket.gaierror(-2, "Name or service not known"), None, "its name cannot be resolved"),
        (ConnectionRefusedError(111, "refused"), None, "connection refused"),
        (OSError(113, "No route to host"), None, "No route to host"),
        (
            ConnectionResetError(104, "Connection reset by peer"),
            None,
            "the connection was closed before an answer came",
        ),
        (OSError(errno.ENOTCONN, "not connected"), None, "the connection was closed before an answer came"),
        (ValueError("a\nb\x1b[31m"), None, "a b?[31m"),
        (ValueError("x" * 300), None, "x" * 200),
        (TimeoutError(), None, "no connection within a few seconds"),
        (TimeoutError(), 2.5, "no answer within 2.5 s"),
        (TimeoutError(), 0.0, "no answer within 0 s"),
    ],
)
def test_why_there_is_no_answer(error: Exception, seconds: float | None, why: str) -> None:
    found = failure.no_answer(error, "host", seconds)
    assert str(found).startswith(f"host cannot be asked: {why}; ")
    assert found.silent == (seconds is not None)
    outer = ValueError("outer")
    outer.__cause__ = error
    if not isinstance(error, ValueError):
        assert str(failure.no_answer(outer, "host", seconds)) == str(found)


def test_a_bad_certificate_says_what_is_wrong_without_a_full_stop() -> None:
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_message = "certificate has expired."  # type: ignore[misc]
    assert str(failure.no_answer(error, "host", None)) == (
        "host cannot be asked: its TLS certificate is not trusted: certificate has expired; "
        "check certificate-authority and tls-server-name in the kubeconfig"
    )
