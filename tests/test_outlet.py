"""The ways out of several reports: which of them fails, and what becomes of the others."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from kubectl_cgaudit.cli.outlet import Outlet, raise_one
from kubectl_cgaudit.errors import CgauditError, PipeClosedError

FULL, GONE = CgauditError("f is full"), PipeClosedError()


class Sink:
    """Fails at one moment, and tells what was done to it."""

    def __init__(self, at: str = "", error: Exception = FULL) -> None:
        self.at, self.error = at, error
        self.told: list[str] = []

    def _do(self, what: str) -> None:
        if what == self.at:
            raise self.error
        self.told.append(what)

    @contextlib.contextmanager
    def open(self) -> Iterator[Callable[[str], None]]:
        self._do("open")
        try:
            yield self._do
        except BaseException:
            self.told.append("discard")
            raise
        self._do("place")


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("open", []),
        ("a", ["open", "discard"]),
        ("b", ["open", "a", "discard"]),
        ("place", ["open", "a", "b"]),
    ],
)
@pytest.mark.parametrize("error", [FULL, GONE], ids=["full", "gone"])
def test_what_fails_takes_no_more_and_costs_no_other(at: str, told: list[str], error: Exception) -> None:
    failing, other = Sink(at, error), Sink()
    failures: list[Exception] = []
    first, second = Outlet(failing.open(), failures), Outlet(other.open(), failures)
    with first, second:
        for text in ("a", "b"):
            first(text)
            second(text)
    assert (failing.told, first.failed, failures) == (told, True, [error])
    assert (other.told, second.failed) == (["open", "a", "b", "place"], False)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), CgauditError("not of this report")])
def test_what_ends_the_work_places_nothing_and_goes_on(error: BaseException) -> None:
    sink = Sink()
    failures: list[Exception] = []

    def work() -> None:
        with Outlet(sink.open(), failures) as outlet:
            outlet("a")
            raise error

    with pytest.raises(type(error)) as caught:
        work()
    assert (caught.value, sink.told, failures) == (error, ["open", "a", "discard"], [])


def test_all_failures_are_told_and_one_is_raised(capsys: pytest.CaptureFixture[str]) -> None:
    other = CgauditError("g is\x1b full")
    raise_one([])
    for failures, raised, said in (
        ([FULL], FULL, ""),
        ([GONE], GONE, ""),
        ([FULL, GONE], FULL, ""),
        ([GONE, other, FULL], FULL, "error: g is\\x1b full\n"),
    ):
        with pytest.raises(type(raised)) as caught:
            raise_one(failures)
        assert caught.value is raised
        assert capsys.readouterr() == ("", said)
