"""The client certificate of a kubeconfig: what it lacks is said before TLS fails over it, or asks for a passphrase."""

import contextlib
import tempfile
from pathlib import Path

from kubectl_cgaudit.collect.input import read_settings
from kubectl_cgaudit.collect.kubeconfig import Fields
from kubectl_cgaudit.errors import ClusterError

_ENCRYPTED = (b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED")
_EMBEDDED = ("certificate-authority-data", "client-certificate-data", "client-key-data")


def check(cluster: Fields, user: Fields, where: str) -> bool:
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


def check_key(path: str | None, where: str) -> None:
    """Raises ClusterError for an encrypted key. One that cannot be read is named by whoever loads it."""
    key = b""
    with contextlib.suppress(OSError):
        key = read_settings(Path(path)) if path else b""
    if any(mark in key for mark in _ENCRYPTED):
        raise ClusterError(
            f"the client-key of {where} is encrypted, and kubectl cannot use it either; decrypt it first, as with: "
            "openssl pkey -in KEY -out DECRYPTED"
        )
