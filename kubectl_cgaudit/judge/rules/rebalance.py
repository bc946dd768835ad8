"""Requests that give a container back the part of its pod's CPU that others gained. Requests in thousandths of a CPU."""

import math
from functools import lru_cache

from msgspec import Struct

from kubectl_cgaudit.cgroups.weights import MAX_WEIGHT, Formula, milli_to_shares, shares_with_weight, weight_of

Requests = tuple[int, tuple[int, ...]]
"""That of the loser, and those of the gainers."""


class Balance(Struct, frozen=True):
    """Who lost to whom, and what is wanted back.

    ratios: the weight of each gainer over the loser's, as it was. rest: the weight of those that neither gain nor are the
    loser, and what it was over the loser's: they keep their requests. most_lost: the fraction (0..1) of its part from which on
    the loser still lacks too much: weights are whole, and 1 is the least, so not every ratio is reached.
    """

    loser: int
    gainers: tuple[int, ...]
    ratios: tuple[float, ...]
    formula: Formula
    most_lost: float
    rest: tuple[int, float] = (0, 0.0)

    def weights(self, requests: Requests) -> list[int]:
        """The loser's and the gainers'."""
        loser, gainers = requests
        return [weight(milli, self.formula) for milli in (loser, *gainers)]

    def lacks(self, requests: Requests) -> float:
        """The fraction of its part that the loser lacks with these requests; below 0 it has more than it had."""
        weights = self.weights(requests)
        rest, was = self.rest
        return 1 - weights[0] / (sum(weights) + rest) * (1 + sum(self.ratios) + was)

    def enough(self, requests: Requests) -> bool:
        """Whether the loser has its part back, as near as is asked for."""
        return self.lacks(requests) < self.most_lost

    def shifted(self) -> Requests:
        """Requests with the same sum, as near as whole weights allow; those of now where a gainer asks for nothing.

        Where the nearest are not enough, the first that lack nothing. The more the loser has, the less it lacks: bisected,
        as weighing the two sides against each other in turn need not settle.
        """
        if not all(self.gainers):
            return self.loser, self.gainers
        least, most = self.loser, self.loser + sum(self.gainers) - len(self.gainers)
        while least < most:
            middle = (least + most) // 2
            if self.lacks(self._split(middle)) > 0:
                least = middle + 1
            else:
                most = middle
        around = [self._split(mine) for mine in (least - 1, least) if mine >= self.loser]
        nearest = min(around, key=lambda each: abs(self.lacks(each)))
        return nearest if self.enough(nearest) else around[-1]

    def _split(self, mine: int) -> Requests:
        """With so much for the loser, the rest among the gainers in their own ratios; the largest takes what is over."""
        theirs = list(self.lowered(mine))
        left = self.loser + sum(self.gainers) - mine - sum(theirs)
        for place in sorted(range(len(theirs)), key=lambda place: -self.gainers[place]):
            given = max(1, min(self.gainers[place], theirs[place] + left))
            left -= given - theirs[place]
            theirs[place] = given
        return mine, tuple(theirs)

    def lowered(self, mine: int) -> tuple[int, ...]:
        """Requests of the gainers, none larger than now, beside which so much for the loser gives it its part back."""
        own = weight(mine, self.formula)
        rest, was = self.rest
        # What the rest gained on the loser they give up too.
        theirs = max(0.0, own - (rest - own * was) / sum(self.ratios))
        return tuple(
            min(old, request_for(theirs * ratio, self.formula))
            for old, ratio in zip(self.gainers, self.ratios, strict=True)
        )

    def raised(self) -> int:
        """The request of the loser alone that is enough beside those of the gainers: the nearest weight, or the next one."""
        rest, was = self.rest
        wanted = (sum(self.weights((self.loser, self.gainers))[1:]) + rest) / (sum(self.ratios) + was)
        nearest = max(self.loser, request_for(wanted, self.formula))
        if self.enough((nearest, self.gainers)):
            return nearest
        return max(self.loser, request_for(math.ceil(wanted), self.formula))


@lru_cache(maxsize=4096)
def restored(balance: Balance) -> tuple[Requests, int]:
    """What `shifted` and `raised` say, searched for once: many pods have the same sidecar beside the same app."""
    return balance.shifted(), balance.raised()


@lru_cache(maxsize=4096)
def weight(milli: int, formula: Formula) -> int:
    """The weight that a formula makes of a request."""
    return weight_of(milli_to_shares(milli), formula)


def request_for(wanted: float, formula: Formula) -> int:
    """The smallest request whose weight comes nearest to the wanted one."""
    return _least_request(max(1, min(MAX_WEIGHT, round(wanted))), formula)


@lru_cache(maxsize=4096)
def _least_request(whole: int, formula: Formula) -> int:
    return -(-shares_with_weight(whole, formula)[0] * 1000 // 1024)
