"""The client certificate of a kubeconfig: what it lacks is said before TLS fails over it, or asks for a passphrase."""

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


def check_files(authority: str | None, certificate: str | None, key: str | None, where: str) -> None:
    """Raises ClusterError for a file that cannot be read, and for an encrypted key."""
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
