"""What reading freed goes back to the system, where the C library is glibc; elsewhere none of this is needed or known."""

from contextlib import suppress

_ARENA_MAX = -8


def share() -> None:
    """One heap for all threads: what a thread frees in its own, the stages after it cannot use."""
    _glibc("mallopt", _ARENA_MAX, 1)


def give_back() -> None:
    """Return what is free, which glibc keeps for as long as something lies above it."""
    _glibc("malloc_trim", 0)


def _glibc(function: str, *arguments: int) -> None:
    # Another C library, Windows, which has none by that name, or a Python without ctypes.
    with suppress(OSError, AttributeError, TypeError, ImportError):
        import ctypes

        getattr(ctypes.CDLL(None), function)(*arguments)
