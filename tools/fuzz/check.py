"""What every input is held to: a result or an error of this tool, in time, and nothing dropped in silence."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType

from msgspec import Struct

from kubectl_cgaudit.errors import CgauditError

SECONDS = 10.0


class WrongError(AssertionError):
    """A result that hides something."""


class HangError(BaseException):
    """An input that took too long. No `except Exception` keeps it."""


class Trouble(Struct, frozen=True):
    """An input that was not handled."""

    target: str
    seed: int
    number: int
    said: str


Target = Callable[[Random], bool]
"""Makes an input and reads it: whether there was a result. Raises CgauditError, which is right, or anything else."""


def randomness(name: str, seed: int, number: int) -> Random:
    """What makes input `number`, the same at every run."""
    return Random(f"{seed} {name} {number}")  # noqa: S311 - no secret depends on it


def run(name: str, target: Target, seed: int, number: int) -> bool | Trouble:
    """Whether input `number` had a result (False: an error in words), or what is wrong with how it was handled."""
    try:
        with _alarm():
            return target(randomness(name, seed, number))
    except CgauditError as error:
        said = str(error)
        return False if said.strip() else Trouble(name, seed, number, "an error without words")
    except (Exception, HangError) as error:  # noqa: BLE001 - that is what is looked for
        return Trouble(name, seed, number, f"{type(error).__name__}: {str(error)[:300]}")


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"no end within {SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
