"""The locked wheels of a platform, kept in build/wheels so that pip is asked once for each."""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.release import lock, wheels
from tools.release.lock import FILE, ROOT, Pin
from tools.release.platforms import Platform

CACHE = ROOT / "build" / "wheels"


def fetch(platform: Platform, cache: Path = CACHE) -> Iterator[Path]:
    """Every wheel that goes into the platform's archive. Raises DownloadError."""
    pins = lock.read()
    yield from _cached([pin for pin in pins if pin.pure], cache, "any", None, ("any",))
    compiled = [pin for pin in pins if not pin.pure]
    for python in platform.pythons:
        yield from _cached(compiled, cache, f"{platform.name}-{python}", python, platform.tags)


def _cached(pins: Sequence[Pin], cache: Path, name: str, python: str | None, tags: Sequence[str]) -> list[Path]:
    # Another lock file, another folder: nothing old is ever taken.
    folder = cache / hashlib.sha256(FILE.read_bytes()).hexdigest()[:12] / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            wanted = Path(made, "requirements.txt")
            wanted.write_text("\n".join(pin.line for pin in pins))
            target = Path(made, "wheels")
            wheels.download(["--no-deps", "--require-hashes", "-r", str(wanted)], target, python, tags)
            target.rename(folder)
    found = sorted(folder.iterdir())
    # pip compared them when they came; since then they lay where anybody who may write here could replace them.
    hashes = {each for pin in pins for each in pin.hashes}
    for wheel in found:
        if hashlib.sha256(wheel.read_bytes()).hexdigest() not in hashes:
            raise wheels.DownloadError(f"{wheel} is not what {FILE.name} names; remove {cache}, and build again")
    return found
