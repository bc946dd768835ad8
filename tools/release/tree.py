"""What lies in an archive: the wheels' files merged into one lib/, beside a launcher."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tools.release import wheels
from tools.release.lock import LAUNCHER, ROOT
from tools.release.platforms import Platform
from tools.release.windows import executable

Tree = dict[str, bytes]
PACKAGE = "kubectl_cgaudit"
EXECUTABLES = ("kubectl-cgaudit", "kubectl_complete-cgaudit")
# Nothing imports kubernetes.aio, and half of the client is in it.
_CUT = ("kubernetes/aio/",)
# What building and testing leave in a folder that git does not watch over.
_LEFT = frozenset((".venv", "__pycache__", "build", "dist", "kubectl_cgaudit.egg-info"))
# For compilers and type checkers.
_CUT_ENDS = (".pyi", ".pyx", ".pxd", ".c", ".h", "/py.typed")


def build(platform: Platform, found: Iterable[Path]) -> Tree:
    """Every file of a platform's archive by its path, from the wheels it needs."""
    tree: Tree = {"LICENSE": (ROOT / "LICENSE").read_bytes()}
    for wheel in sorted(found):
        if wheels.project(wheel)[0] == LAUNCHER:
            if platform.os == "windows":
                tree["kubectl-cgaudit.exe"] = executable(wheel, platform.arch)
                _merge(tree, _licences(wheel))
        else:
            _merge(tree, _library(wheel) | _licences(wheel))
    if platform.os != "windows":
        tree["kubectl-cgaudit"] = (ROOT / "packaging" / "kubectl-cgaudit").read_bytes()
        tree["kubectl_complete-cgaudit"] = (ROOT / "kubectl_complete-cgaudit").read_bytes()
    return tree | _own()


def sources() -> list[Path]:
    """The project's own files, relative to its folder: those of the commit, whatever lies beside them."""
    if not (ROOT / ".git").exists():
        # An unpacked source distribution holds nothing else.
        paths = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        return [path for path in paths if not _LEFT & {*path.parts} and (ROOT / path).is_file()]
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - git, with our own words
    return [Path(name) for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def _own() -> Tree:
    paths = (path for path in sources() if path.parts[0] == PACKAGE)
    return {f"lib/{path.as_posix()}": (ROOT / path).read_bytes() for path in paths}


def _library(wheel: Path) -> Tree:
    return {
        f"lib/{name}": data
        for name, data in wheels.contents(wheel)
        if ".dist-info/" not in name and ".data/" not in name
        if not name.startswith(_CUT) and not name.endswith(_CUT_ENDS)
    }


def _licences(wheel: Path) -> Tree:
    """Their licences ask to be kept with them; a wheel without a licence file says in METADATA which it has."""
    folder = "licenses/" + "-".join(wheels.project(wheel))
    about = {name.partition(".dist-info/")[2]: data for name, data in wheels.contents(wheel) if ".dist-info/" in name}
    kept = {n: d for n, d in about.items() if n.rpartition("/")[2].upper().startswith(("LICEN", "COPYING", "NOTICE"))}
    return {
        f"{folder}/{name.removeprefix('licenses/')}": data
        for name, data in (kept or {"METADATA": about["METADATA"]}).items()
    }


def _merge(tree: Tree, more: Tree) -> None:
    """Compiled parts carry their Python's name, so wheels for several Pythons fit in one folder; all else must be equal."""
    for path, data in more.items():
        if tree.setdefault(path, data) != data:
            raise ValueError(f"two wheels differ in {path}; the archive cannot serve both")
