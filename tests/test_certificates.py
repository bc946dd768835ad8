"""What is said of client certificates that cannot be used."""

import base64
import tempfile

import pytest

from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.transport import Api
from tests.vcr_support import kubeconfig, refused

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def nowhere_to_write(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority-data": "YWJj"}, {"token": "t"}),
        ({}, {"client-certificate-data": "YWJj", "client-key-data": "YWJj"}),
    ],
)
def test_what_is_embedded_needs_a_temporary_folder(tmp_path, nowhere_to_write, cluster, user):
    path = kubeconfig(tmp_path / "c", cluster=cluster, user=user)
    assert refused(Connection(kubeconfig=path)) == (
        "the certificates of context mixed stand in no file and need a temporary folder, and none can be written to; "
        "set TMPDIR to one that can"
    )


def test_what_is_in_files_needs_none(tmp_path, nowhere_to_write):
    for name in ("a.crt", "a.key"):
        (tmp_path / name).write_text("x")
    user = {"client-certificate": "a.crt", "client-key": "a.key"}
    with Api(Connection(kubeconfig=kubeconfig(tmp_path / "c", user=user))) as api:
        assert api._configuration.key_file == str(tmp_path / "a.key")


HEADS = ["-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("embedded", [False, True])
def test_an_encrypted_key_is_named_and_nobody_asked_for_its_passphrase(tmp_path, head, embedded):
    (tmp_path / "a.crt").write_text("x")
    (tmp_path / "a.key").write_text(head)
    data = base64.b64encode(head.encode()).decode()
    user = {"client-certificate": "a.crt"} | ({"client-key-data": data} if embedded else {"client-key": "a.key"})
    assert refused(Connection(kubeconfig=kubeconfig(tmp_path / "c", user=user))) == (
        "the client-key of context mixed is encrypted, and kubectl cannot use it either; decrypt it first, as with: "
        "openssl pkey -in KEY -out DECRYPTED"
    )


@pytest.mark.parametrize("name", ["client-certificate", "client-certificate-data"])
def test_a_certificate_without_a_key_says_what_is_missing(tmp_path, name):
    path = kubeconfig(tmp_path / "c", user={name: "YWJj"})
    assert refused(Connection(kubeconfig=path)) == (
        f"context mixed has {name} and no client-key; add client-key or client-key-data to its user"
    )
