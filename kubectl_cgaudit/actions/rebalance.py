"""Requests that give a container back the part of its pod's CPU that others gained. Requests in thousandths of a CPU."""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, product
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.audit.rounding import rounded
from kubectl_cgaudit.audit.thresholds import reached
from kubectl_cgaudit.cgroups.weights import (
    MAX_SHARES,
    MAX_WEIGHT,
    MIN_SHARES,
    milli_to_shares,
    shares_with_weight,
    weight_of,
)

Requests = tuple[int, tuple[int, ...]]
"""That of the loser, and those of the gainers."""
Measure = Literal["shares", "linear", "quadratic"]
"""What containers compete with: shares on cgroup v1, on v2 the weight that a formula makes of them."""
_FEW = 6
_HALVINGS = 40


class Balance(Struct, frozen=True):
    """Who lost to whom, and what is wanted back.

    ratios: the value of each gainer over the loser's, as it was. rest: the values of those that neither gain nor are the
    loser, and rest_ratios what they were over the loser's: they keep their requests. most_lost: the fraction (0..1) of its
    part from which on a container lacks too much: values are whole, and 1 is the least weight, so not every ratio is reached.
    """

    loser: int
    gainers: tuple[int, ...]
    ratios: tuple[float, ...]
    measure: Measure
    most_lost: float
    rest: tuple[int, ...] = ()
    rest_ratios: tuple[float, ...] = ()

    def values(self, requests: Requests) -> list[int]:
        """The loser's and the gainers'."""
        loser, gainers = requests
        return [value(milli, self.measure) for milli in (loser, *gainers)]

    def lacking(self, requests: Requests) -> list[float]:
        """The fraction of its part that each lacks with these requests; below 0 it has more than it had.

        The loser first, then the gainers, then the rest.
        """
        values = [*self.values(requests), *self.rest]
        ratios = (1.0, *self.ratios, *self.rest_ratios)
        grown = sum(ratios) / sum(values)
        return [1 - own * grown / ratio for own, ratio in zip(values, ratios, strict=True)]

    def too_much(self, lacks: float) -> bool:
        """Whether a container may not lack this fraction of its part: what is found does."""
        return reached(rounded(lacks) or 0.0, self.most_lost)

    def lacks(self, requests: Requests) -> float:
        """What the loser lacks."""
        values = self.values(requests)
        grown = sum((1.0, *self.ratios, *self.rest_ratios)) / (sum(values) + sum(self.rest))
        return 1 - values[0] * grown

    def enough(self, requests: Requests) -> bool:
        """Whether the loser has its part back, as near as is asked for."""
        return not self.too_much(self.lacks(requests))

    def fair(self, requests: Requests) -> bool:
        """Whether it has, and nobody else lacks too much instead.

        Who lacks too much without these requests as well, as of two losers the other does, may do so, but not lack more.
        """
        much = {place: lacks for place, lacks in enumerate(self.lacking(requests)) if self.too_much(lacks)}
        without = self.lacking((self.loser, self.gainers))
        return 0 not in much and all(lacks <= without[place] for place, lacks in much.items())

    def shifted(self) -> Requests:
        """Requests with the same sum that are fair, of these the nearest; those of now where there are none.

        Who asks for nothing has nothing to give. The more the loser has, the less it lacks: bisected, as weighing the two
        sides against each other in turn need not settle.
        """
        least, most = self.loser, self.loser + sum(max(0, each - 1) for each in self.gainers)
        while least < most:
            middle = (least + most) // 2
            if self.lacks(self._split(middle)) > 0:
                least = middle + 1
            else:
                most = middle
        near = (self._split(least - 1), self._split(least), *self._whole(least))
        nearest = sorted(near, key=lambda each: abs(self.lacks(each)))
        return next(filter(self.fair, nearest), (self.loser, self.gainers))

    def spread(self) -> Requests | None:
        """Requests with the same sum by which nobody lacks too much, None where these do: those of another loser grow, too."""
        total = self.loser + sum(self.gainers)

        def at(own: float) -> list[int]:
            return [request_for(own * ratio, self.measure) for ratio in (1.0, *self.ratios)]

        least, most = 0.0, float(MAX_SHARES)
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            least, most = (middle, most) if sum(at(middle)) <= total else (least, middle)
        found = at(least)
        # The largest takes what is over: there it moves least.
        found[found.index(max(found))] += total - sum(found)
        mine, *theirs = found
        even = min(found) > 0 and not any(map(self.too_much, self.lacking((mine, tuple(theirs)))))
        return (mine, tuple(theirs)) if even else None

    def _whole(self, mine: int) -> Iterator[Requests]:
        """With about so much for the loser, and for each gainer the value just below or above what it should have."""
        wanted = [self._theirs(mine) * ratio for ratio in self.ratios]
        choices = [
            (self._at_most(math.floor(each), place), self._at_most(math.ceil(each), place))
            for place, each in enumerate(wanted)
        ]
        # Of many gainers there are too many ways: all below, or all above.
        for theirs in product(*choices) if len(choices) <= _FEW else zip(*choices, strict=True):
            yield self.loser + sum(self.gainers) - sum(theirs), theirs

    def _at_most(self, wanted: float, place: int) -> int:
        return min(self.gainers[place], request_for(wanted, self.measure))

    def _split(self, mine: int) -> Requests:
        """With so much for the loser, the rest among the gainers in their own ratios; the largest takes what is over."""
        theirs = list(self.lowered(mine))
        left = self.loser + sum(self.gainers) - mine - sum(theirs)
        for place in sorted(range(len(theirs)), key=lambda place: -self.gainers[place]):
            given = min(self.gainers[place], max(1, theirs[place] + left))
            left -= given - theirs[place]
            theirs[place] = given
        return mine, tuple(theirs)

    def lowered(self, mine: int) -> tuple[int, ...]:
        """Requests of the gainers, none larger than now, beside which so much for the loser gives it its part back."""
        theirs = self._theirs(mine)
        return tuple(self._at_most(theirs * ratio, place) for place, ratio in enumerate(self.ratios))

    def _theirs(self, mine: int) -> float:
        """What all gainers should have beside so much for the loser, over what they had together over the loser."""
        if not self.ratios:
            return 0.0  # Of many, each may gain too little to be seen.
        own = value(mine, self.measure)
        # What the rest gained on the loser they give up too.
        return max(0.0, own - (sum(self.rest) - own * sum(self.rest_ratios)) / sum(self.ratios))

    def raised(self) -> int:
        """The request of the loser alone that is enough beside those of the others: the nearest, and fair if any is."""
        others = sum(self.values((self.loser, self.gainers))[1:]) + sum(self.rest)
        wanted = others / (sum(self.ratios) + sum(self.rest_ratios))
        around = [max(self.loser, request_for(each, self.measure)) for each in (wanted, wanted - 0.5, wanted + 0.5)]
        near = sorted(dict.fromkeys((mine, self.gainers) for mine in around), key=lambda each: abs(self.lacks(each)))
        mine, _ = next(chain(filter(self.fair, near), filter(self.enough, near), [max(near)]))
        return mine


@lru_cache(maxsize=4096)
def restored(balance: Balance) -> tuple[Requests, int]:
    """What `shifted` and `raised` say, searched for once: many pods have the same sidecar beside the same app."""
    return balance.shifted(), balance.raised()


@lru_cache(maxsize=4096)
def spread(balance: Balance) -> Requests | None:
    """What `spread` says, searched for once."""
    return balance.spread()


@lru_cache(maxsize=4096)
def value(milli: int, measure: Measure) -> int:
    """What a container with this request competes with."""
    shares = milli_to_shares(milli)
    return shares if measure == "shares" else weight_of(shares, measure)


def request_for(wanted: float, measure: Measure) -> int:
    """The smallest request whose value comes nearest to the wanted one."""
    least, most = (MIN_SHARES, MAX_SHARES) if measure == "shares" else (1, MAX_WEIGHT)
    return _least_request(max(least, min(most, round(wanted))), measure)


@lru_cache(maxsize=4096)
def _least_request(whole: int, measure: Measure) -> int:
    shares = whole if measure == "shares" else shares_with_weight(whole, measure)[0]
    return -(-shares * 1000 // 1024)
