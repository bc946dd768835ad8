"""Memory: what reading freed goes back to the system, and what is made is not looked through for garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_ARENA_MAX = -8


def share() -> None:
    """One heap for all threads: what a thread frees in its own, the stages after it cannot use."""
    _glibc("mallopt", _ARENA_MAX, 1)


def give_back() -> None:
    """Return what is free, which glibc keeps for as long as something lies above it."""
    _glibc("malloc_trim", 0)


@contextmanager
def uncollected() -> Iterator[None]:
    """Where all that is made is needed to the end: to look through it for garbage was a quarter of the work."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _glibc(function: str, *arguments: int) -> None:
    # Only glibc needs this. Another C library, Windows, which has none by that name, or a Python without ctypes.
    with suppress(OSError, AttributeError, TypeError, ImportError):
        import ctypes

        getattr(ctypes.CDLL(None), function)(*arguments)
