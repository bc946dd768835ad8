"""packaging/requirements.lock: which version of each dependency goes into the archives, and the hash of every wheel.

`python -m tools.release.lock` writes it anew from what pyproject.toml asks for.
"""

import hashlib
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.release import wheels
from tools.release.platforms import PLATFORMS, PYTHONS

ROOT = Path(__file__).parents[2]
FILE = ROOT / "packaging" / "requirements.lock"
# The asynchronous half of the Kubernetes client, which is cut out of the archives (see tree.py), needs these.
UNUSED = (
    "aiohappyeyeballs", "aiohttp", "aiohttp-retry", "aiosignal", "attrs", "frozenlist", "multidict", "propcache", "yarl",
)  # fmt: skip
# Gives the .exe that krew needs on Windows; its code is not in the archives.
LAUNCHER = "distlib"
_HEAD = """\
# What is inside the archives, for every platform and Python. Written by: python -m tools.release.lock
# Pure packages are one wheel for all; compiled ones have one for each platform and Python.
"""
_LINE = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ]+)")


@dataclass(frozen=True)
class Pin:
    """A dependency at one version."""

    name: str
    version: str
    pure: bool
    hashes: tuple[str, ...]

    @property
    def line(self) -> str:
        """As pip reads it."""
        return f"{self.name}=={self.version}" + "".join(f" \\\n    --hash=sha256:{each}" for each in self.hashes)


def read() -> tuple[Pin, ...]:
    """The pins of the lock file."""
    pins = []
    pure = True
    for entry in FILE.read_text().replace("\\\n", " ").splitlines():
        if entry.startswith("#"):
            pure = pure and entry != "# compiled"
        elif found := _LINE.match(entry):
            pins.append(Pin(found["name"], found["version"], pure, tuple(re.findall(r"sha256:(\w{64})", entry))))
    return tuple(pins)


def wanted() -> list[str]:
    """The dependencies of the package, as pyproject.toml has them."""
    found = re.search(r"^dependencies = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    return re.findall(r'"(.+?)"', found[1]) if found else []


def main() -> None:
    """Choose the newest versions that run on the oldest Python, and write the hashes of all their wheels."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder, "chosen")
        linux = PLATFORMS[0]
        wheels.download([*wanted(), LAUNCHER], chosen, PYTHONS[0], linux.tags)
        names = sorted(wheels.project(wheel) for wheel in chosen.iterdir())
        pins = [pin for pin in names if pin[0] not in UNUSED]
        pure, compiled = [], []
        for name, version in pins:
            target = Path(folder, "any", name)
            if wheels.try_download([f"{name}=={version}", "--no-deps"], target, None, ("any",)):
                pure.append(Pin(name, version, True, _hashes(target)))
                continue
            target = Path(folder, "compiled", name)
            with ThreadPoolExecutor(4) as several:
                get = partial(wheels.download, [f"{name}=={version}", "--no-deps"], target)
                list(several.map(lambda each, get=get: get(*each), _combinations()))
            compiled.append(Pin(name, version, False, _hashes(target)))
    parts = [_HEAD, "# pure", *(pin.line for pin in pure)]
    FILE.write_text("\n".join([*parts, "\n# compiled", *(pin.line for pin in compiled)]) + "\n")


def _combinations() -> Iterator[tuple[str, tuple[str, ...]]]:
    for platform in PLATFORMS:
        yield from ((python, platform.tags) for python in platform.pythons)


def _hashes(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in folder.iterdir()))


if __name__ == "__main__":
    main()
