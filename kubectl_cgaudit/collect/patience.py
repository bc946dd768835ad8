"""How long and how often a failing server is asked again."""

from time import sleep

PASSING = {429, 500, 502, 503, 504}
"""HTTP statuses that may be gone a moment later."""
TRIES = 5
BUDGET_SECONDS = 60.0
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0


def pause(attempt: int, retry_after: str) -> float:
    """Seconds to wait after the failed attempt (1, 2, ...): what the server asks for, else twice as long each time."""
    if retry_after.isdecimal():
        return min(float(retry_after), _LONGEST_PAUSE)
    return float(min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE))


class Patience:
    """Waits between the attempts of all requests of a run, and has an end."""

    def __init__(self, budget: float = BUDGET_SECONDS) -> None:
        self._left = budget

    def spend(self, seconds: float) -> None:
        """Take from the budget what was waited elsewhere."""
        self._left -= seconds

    def waits(self, attempt: int, retry_after: str = "", tries: int = TRIES) -> bool:
        """Wait after a failed attempt; False, at once, where it was the last one or the budget is used up."""
        seconds = pause(attempt, retry_after)
        if attempt >= tries or seconds > self._left:
            return False
        self._left -= seconds
        sleep(seconds)
        return True
