"""Who may ask: bearer tokens that are replaced, a certificate for TLS, and kubeconfigs with either."""

import subprocess
import sys
import threading
from pathlib import Path

import yaml

_HERE = Path(__file__).parent


class Credentials:
    """One bearer token at a time. `uses`: after so many requests the next one takes its place (0: only on rotate)."""

    def __init__(self, token: str, uses: int = 0) -> None:
        self._name = token
        self._uses = uses
        self._left = uses
        self._number = 1
        self._files: list[Path] = []
        self._lock = threading.Lock()
        self.token = token

    def accepts(self, header: str) -> bool:
        """Whether an Authorization header has the token of the moment. Counts its uses."""
        with self._lock:
            if not self._name:
                return True
            scheme, _, sent = header.partition(" ")
            if scheme.lower() != "bearer" or sent != self.token:
                return False
            if self._uses and not self._left:
                self._replace()
                return False
            self._left -= 1
            return True

    def rotate(self) -> str:
        """Replace the token, here and in its files."""
        with self._lock:
            self._replace()
            return self.token

    def keep_in(self, path: Path) -> None:
        """Write the token to this file, now and whenever it is replaced."""
        with self._lock:
            self._files.append(path)
            path.write_text(self.token)

    def _replace(self) -> None:
        self._number += 1
        self._left = self._uses
        self.token = f"{self._name}-{self._number}"
        for path in self._files:
            path.write_text(self.token)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for this machine and its key, by the openssl command."""
    crt, key = folder / "tls.crt", folder / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-days", "2", "-subj", "/CN=simulator", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(crt)]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    return crt, key


def kubeconfig(path: Path, url: str, ca: Path | None, credentials: Credentials, auth: str) -> Path:
    """Write a kubeconfig. `auth`: token, file (tokenFile), exec (a plugin; FILE.runs counts its runs)."""
    user: dict[str, object] = {}
    kept = path.with_suffix(".token")
    if auth == "token" and credentials.token:
        user = {"token": credentials.token}
    elif auth == "file":
        credentials.keep_in(kept)
        user = {"tokenFile": str(kept)}
    elif auth == "exec":
        credentials.keep_in(kept)
        plugin = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "interactiveMode": "Never",
            "command": sys.executable,
        }
        user = {"exec": {**plugin, "args": [str(_HERE / "credential.py"), str(kept)]}}
    cluster = {"server": url, **({"certificate-authority": str(ca)} if ca else {})}
    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "simulator", "cluster": cluster}],
        "users": [{"name": "auditor", "user": user}],
        "contexts": [{"name": "simulator", "context": {"cluster": "simulator", "user": "auditor"}}],
        "current-context": "simulator",
    }
    path.write_text(yaml.safe_dump(said, sort_keys=False))
    return path
