"""Nothing of the developer's terminal decides a test, and no test waits for a server to come to itself."""

import signal
from collections.abc import Iterator

import pytest

from kubectl_cgaudit.collect import patience


@pytest.fixture(autouse=True, scope="session")
def _heard_interrupts() -> Iterator[None]:
    """Shells start a background job deaf to Ctrl-C, and what the tests start would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long would have been waited between attempts."""
    waited: list[float] = []
    monkeypatch.setattr(patience, "sleep", waited.append)
    return waited
