"""How long a kubelet's metrics take to read: a recorded text and damaged ones, against splitting the recorded one."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec
from msgspec import Struct

from kubectl_cgaudit.collect.metrics import shares
from kubectl_cgaudit.errors import InputError
from tools.bench.cost import PYTHON, ROOT, environment

_RECORDED = "recorded"
_RECORDED_BAR, _HOSTILE_BAR = 10.0, 1000.0


class Metrics(Struct, frozen=True):
    """A text, and how many times as long a byte of it may take as one of the recorded text takes to be split.

    Of the damaged ones it is enough that their time grows with their size, and not with its square.
    """

    text: str
    bar: float
    read: tuple[float, float]
    """Milliseconds of CPU for a million bytes: minimum and median."""
    split: tuple[float, float]
    """Of decoding the recorded text and splitting it into lines."""

    @property
    def ratio(self) -> tuple[float, float]:
        """To the split: of the minima, of the medians."""
        return self.read[0] / self.split[0], self.read[1] / self.split[1]


def measure(repeats: int) -> list[Metrics]:
    """Read each text so many times, in a process of its own: what this one holds counts as its children's peak."""
    command = [PYTHON, "-m", "tools.bench.metrics", str(repeats)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), check=True, stdout=subprocess.PIPE)  # noqa: S603
    return msgspec.json.decode(done.stdout, type=list[Metrics])


def _measured(repeats: int) -> list[Metrics]:
    from tests.kubelet_support import HOSTILE_METRICS, golden

    recorded = golden("worker-a", "/metrics/cadvisor")
    split = _milliseconds(lambda text: text.decode().splitlines(), recorded, repeats)
    texts = [(_RECORDED, _RECORDED_BAR, recorded)]
    texts += [(f"damaged: {name}", _HOSTILE_BAR, text) for name, text in HOSTILE_METRICS.items()]
    return [Metrics(name, bar, _milliseconds(shares, text, repeats), split) for name, bar, text in texts]


def _milliseconds(read: Callable[[bytes], object], text: bytes, repeats: int) -> tuple[float, float]:
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        with suppress(InputError):
            read(text)
        taken.append((time.process_time() - began) * 1000 / (len(text) / 1e6))
    return round(min(taken), 3), round(statistics.median(taken), 3)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_measured(int(sys.argv[1]))))
