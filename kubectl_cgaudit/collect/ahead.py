"""Work that is begun before its result is asked for, in a thread of its own."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, NoReturn, TypeVar

_Result = TypeVar("_Result")
_WAIT_S = 0.5


class Ahead(Generic[_Result]):
    """What a call will give. One that nobody asks for goes on alone, and ends with the program."""

    def __init__(self, call: Callable[[], _Result]) -> None:
        self._came: SimpleQueue[Callable[[], _Result]] = SimpleQueue()
        threading.Thread(target=self._work, args=(call,), daemon=True, name="ahead").start()

    def _work(self, call: Callable[[], _Result]) -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - whatever it is, who asks has to see it
            self._came.put(partial(_raise, error))
        else:
            self._came.put(lambda: result)

    def result(self, seconds: float | None = None) -> _Result:
        """Wait for it, once, and no longer than so many seconds. Raises what the call raised, or TimeoutError."""
        ends = None if seconds is None else time.monotonic() + seconds
        came = None
        while came is None:
            left = _WAIT_S if ends is None else ends - time.monotonic()
            if left <= 0:
                raise TimeoutError
            with suppress(Empty):
                # With a limit, as Windows does not let Ctrl-C end a wait that has none.
                came = self._came.get(timeout=min(left, _WAIT_S))
        return came()


def _raise(error: BaseException) -> NoReturn:
    raise error
