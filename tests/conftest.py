"""Nothing of the developer's terminal decides a test, and no test waits for a server to come to itself."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_cgaudit.collect import patience
from kubectl_cgaudit.collect.kubeconfig import Connection
from tests.simulator import Store
from tests.simulator_support import CLUSTER
from tests.support import container, listed, node, pod
from tests.vcr_support import kubeconfig

# When the cluster was recorded: reports carry the time, and `make demo` sets this one.
os.environ["SOURCE_DATE_EPOCH"] = "1795222583"


@pytest.fixture(autouse=True, scope="session")
def _heard_interrupts() -> Iterator[None]:
    """Shells start a background job deaf to Ctrl-C, and what the tests start would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty home folder, where nothing else says which cluster there is, or by which proxy."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return folder


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long would have been waited between attempts."""
    waited: list[float] = []
    monkeypatch.setattr(patience, "sleep", waited.append)
    return waited


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A file with a node and two pods."""
    path = tmp_path / "small.json"
    path.write_text(
        listed(
            node(), pod("p", container("app", "1"), labels={"app": "web"}), pod("q", container("c", "1"), namespace="b")
        )
    )
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(CLUSTER, tmp_path_factory.mktemp("store"))
    yield made
    made.close()


@pytest.fixture
def recorded(tmp_path: Path) -> Connection:
    """A connection to the recorded cluster's API server, whose answers a cassette holds."""
    return Connection(kubeconfig=kubeconfig(tmp_path / "config"))
