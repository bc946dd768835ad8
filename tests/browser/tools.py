"""Finds, and where it may installs, what the browser tests need: Node, npm, a Chromium, two npm packages.

CGAUDIT_BROWSER=found uses only what is there; CGAUDIT_BROWSER=required fails where the tests would be skipped.
CGAUDIT_CHROMIUM names the Chromium to take.
"""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
NODE_AT_LEAST = 18
_CHROMIUMS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/usr/lib/chromium/chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
_DEBIAN_PACKAGES = {"node": "nodejs", "npm": "npm", "chromium": "chromium"}
_APT = ("apt-get", "-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Retries=2")


class Missing(Exception):  # noqa: N818
    """The browser tests cannot run here; says what is missing."""


class Tools(msgspec.Struct, frozen=True):
    """Paths of programs."""

    node: str
    chromium: str


def find() -> Tools:
    """What there is, after an attempt to install what there is not. Raises Missing."""
    lacking = _lacking()
    why = _install(lacking) if lacking else ""
    if lacking and (still := _lacking()):
        raise Missing(f"browser tests: no {', no '.join(still)}{why}")
    _packages()
    return Tools(str(shutil.which("node")), str(_chromium()))


def run(script: str, *arguments: str, given: Any = None) -> str:
    """What a Node script of this folder prints. `given` is its standard input, as JSON."""
    node = str(shutil.which("node"))
    text = None if given is None else json.dumps(given)
    done = subprocess.run(
        [node, str(HERE / script), *arguments], input=text, capture_output=True, text=True, timeout=1800
    )
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr}")
    return done.stdout


def _lacking() -> list[str]:
    there = {"node": _node_works(), "npm": shutil.which("npm") is not None, "chromium": _chromium() is not None}
    return [name for name, found in there.items() if not found]


def _node_works() -> bool:
    node = shutil.which("node")
    said = _answer(node, "--version") if node else None
    return said is not None and int(said.removeprefix("v").split(".")[0]) >= NODE_AT_LEAST


def _chromium() -> str | None:
    """The first Chromium that starts: Ubuntu's package of this name is a stub that only names a snap."""
    own = os.environ.get("CGAUDIT_CHROMIUM")
    found = (shutil.which(name) for name in ((own,) if own else _CHROMIUMS))
    return next((path for path in found if path and _answer(path, "--version")), None)


def _answer(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _install(lacking: list[str]) -> str:
    """Asks Debian for it; says why not, if not."""
    if os.environ.get("CGAUDIT_BROWSER") == "found":
        return " (CGAUDIT_BROWSER=found: nothing was installed)"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return " (install it, or run as root where apt-get can)"
    packages = [_DEBIAN_PACKAGES[name] for name in lacking]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for step in (("update",), ("install", "-y", "--no-install-recommends", *packages)):
        code = _exit_code((*_APT, *step), environment)
        if code is None:
            return f" (apt-get {step[0]} did not end)"
    return f" (apt-get install {' '.join(packages)}: exit code {code})"


def _exit_code(command: tuple[str, ...], environment: dict[str, str]) -> int | None:
    try:
        return subprocess.run(command, env=environment, capture_output=True, timeout=600).returncode
    except subprocess.TimeoutExpired:
        return None


def _packages() -> None:
    """The npm packages of the lock file, put into node_modules unless they are there. Raises Missing."""
    stamp, wanted = (
        HERE / "node_modules" / ".lock",
        hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest(),
    )
    if stamp.exists() and stamp.read_text() == wanted:
        return
    command = [str(shutil.which("npm")), "ci", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired as error:
        raise Missing("browser tests: no npm packages (npm ci did not end)") from error
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if line.startswith("npm error")][:1]
        raise Missing(f"browser tests: no npm packages (npm ci: {' '.join(last)})")
    stamp.write_text(wanted)
