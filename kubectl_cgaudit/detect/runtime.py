"""OCI runtimes: which formula a version uses, and whether it writes a rounded CPU quota."""

import re
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.cgroups.weights import FORMULAS, Formula
from kubectl_cgaudit.errors import UsageError

ContainerFormula = Literal["linear", "quadratic", "none"]

_VERSION = re.compile(r"v?(\d{1,4})(?:\.(\d{1,4}))?(?:\.(\d{1,4}))?(-rc[.~-]?\d+)?(?:[-+~].*)?", re.ASCII)
_ALIASES = {"gvisor": "runsc", "sysbox": "sysbox-runc", "kata-runtime": "kata"}
# The first release with the quadratic formula; runc's 1.4 line has it from its first candidate on.
FIRST_QUADRATIC = {"runc": (1, 3, 2), "crun": (1, 23, 0), "youki": (0, 5, 7)}
# Kata sets no weight on the host, and gVisor's containers run in their sandbox's cgroup: theirs stay empty, at the default
# (google/gvisor runsc/container/container.go, setupCgroupForSubcontainer).
ALWAYS: dict[str, ContainerFormula] = {"runsc": "none", "sysbox-runc": "linear", "kata": "none"}
KNOWN = (*FIRST_QUADRATIC, *ALWAYS)
_NEWEST = {
    "runc": ("2026-08-22", ((1, 1, 15), (1, 2, 9), (1, 3, 6), (1, 4, 3), (1, 5, 1))),
    "crun": ("2026-08-21", ((1, 29, 1),)),
}
"""The newest releases that were read, of each line that still gets some, and when."""


class Runtime(Struct, frozen=True):
    """What a runtime handler runs.

    `formula` is `none` for a runtime that sets no weight on the host (Kata, gVisor); `rounds_quota` says whether
    the container's cgroup carries the quota rounded up to 10 ms under the systemd driver.
    """

    name: str | None
    version: str | None
    formula: ContainerFormula
    rounds_quota: bool

    def __str__(self) -> str:
        named = " ".join(part for part in (self.name, self.version) if part)
        return f"{named} ({self.formula})" if named else self.formula


def bare(formula: Formula) -> Runtime:
    """A runtime of which only the formula is known; its quota is taken to be that of the runc of that formula."""
    return Runtime(None, None, formula, rounds_quota=formula == "quadratic")


def of_handler(handler: str, formula: Formula) -> Runtime:
    """The runtime of a handler, of this formula where its name does not speak of one that has only one."""
    name = named_by(handler)
    return parse(name) if name in ALWAYS else of_name(name, formula)


def of_name(name: str | None, formula: Formula) -> Runtime:
    """A runtime of this name, where there is one, in a release that has this formula."""
    if name is None:
        return bare(formula)
    return Runtime(name, None, formula, _rounds(name, quadratic=formula == "quadratic"))


def parse(text: str) -> Runtime:
    """Read `runc 1.3.6`, `crun=1.21`, `kata`, `linear` or `quadratic`.

    Raises UsageError for another name, a missing version, or one that does not decide the formula.
    """
    words = text.replace("=", " ").split()
    if len(words) == 1 and words[0] in FORMULAS:
        return bare(words[0])
    if not words or len(words) > 2:
        raise UsageError(
            f"{text!r} is not a runtime; write its name and version as in 'runc 1.3.6', or linear or quadratic"
        )
    name = _ALIASES.get(words[0].lower(), words[0].lower())
    version = words[1] if len(words) == 2 else None
    if name in ALWAYS:
        return Runtime(name, version, ALWAYS[name], rounds_quota=False)
    if name not in FIRST_QUADRATIC:
        hint = (
            "; containerd's or CRI-O's version does not decide it: name the runtime"
            if name in ("containerd", "cri-o")
            else ""
        )
        raise UsageError(f"{words[0]!r} is not a runtime cgaudit knows ({', '.join(KNOWN)}, linear, quadratic){hint}")
    if version is None:
        raise UsageError(f"{text!r} needs a version, as in '{name} {'.'.join(map(str, FIRST_QUADRATIC[name]))}'")
    quadratic = _is_quadratic(name, version)
    return Runtime(
        name,
        version.removeprefix("v"),
        "quadratic" if quadratic else "linear",
        # crun leaves systemd's rounded value on the scope; runc writes the raw one over it until 1.3.2.
        rounds_quota=_rounds(name, quadratic=quadratic),
    )


def unreleased(target: Runtime) -> str:
    """Return why there may be no such release; empty where there is nothing odd about it."""
    found = _VERSION.fullmatch(target.version or "")
    if not found or target.name not in _NEWEST:
        return ""
    date, newest = _NEWEST[target.name]
    version = tuple(int(part) for part in found.groups()[:3] if part is not None)
    if found[4] and not int(re.sub(r"\D", "", found[4])):
        return f"{target.name} numbers its release candidates from 1 on"
    line = next((last for last in newest if version[:2] == last[:2]), newest[-1])
    if version <= line[: len(version)] or version[:2] < line[:2]:
        return ""
    return f"the newest {target.name} known here is {'.'.join(map(str, line))} ({date})"


def older(one: Runtime, other: Runtime) -> bool:
    """Return whether one is an older release than the other of the same runtime, as far as both say which they are."""
    if one.name is None or one.name != other.name or one.version is None or other.version is None:
        return one.formula == "linear" and other.formula == "quadratic"
    return _order(one.version) < _order(other.version)


def _order(version: str) -> tuple[tuple[int, ...], bool, int]:
    """To compare releases by: a candidate comes before its release."""
    found = _VERSION.fullmatch(version)
    if not found:
        return (), False, 0
    numbers = tuple(int(part or 0) for part in found.groups()[:3])
    return numbers, not found[4], int(re.sub(r"\D", "", found[4] or "0"))


def _rounds(name: str, *, quadratic: bool) -> bool:
    return name == "crun" or (name == "runc" and quadratic)


def _is_quadratic(name: str, version: str) -> bool:
    found = _VERSION.fullmatch(version)
    if not found:
        raise UsageError(f"{version!r} is not a version of {name}, such as {'.'.join(map(str, FIRST_QUADRATIC[name]))}")
    first = FIRST_QUADRATIC[name]
    given = tuple(int(part) for part in found.groups()[:3] if part is not None)
    if len(given) < 3 and given == first[: len(given)] and any(first[len(given) :]):
        last = ".".join(map(str, first))
        raise UsageError(
            f"{name} {version} holds both formulas ({last} is the first quadratic one): give the full version"
        )
    if name == "runc" and found[4] and given[:2] == (1, 3):
        return False
    return given >= first[: len(given)]


def upgraded(runtime: Runtime) -> Runtime:
    """The same runtime in a release with the quadratic formula, where there is one."""
    if runtime.formula != "linear" or runtime.name in ALWAYS:
        return runtime
    if runtime.name is None:
        return bare("quadratic")
    if runtime.version is None:
        return Runtime(runtime.name, None, "quadratic", _rounds(runtime.name, quadratic=True))
    first = FIRST_QUADRATIC[runtime.name]
    digits = first[:2] if first[2] == 0 else first
    return Runtime(runtime.name, ".".join(map(str, digits)), "quadratic", _rounds(runtime.name, quadratic=True))


def sets_none(handler: str) -> bool:
    """Whether a handler's name speaks of a runtime that sets no weight of containers on the host."""
    return ALWAYS.get(named_by(handler) or "") == "none"


def named_by(handler: str) -> str | None:
    """The runtime a handler's name speaks of (`crun-old`: crun), or None."""
    first = re.split(r"[-_.]", handler.lower())[0]
    name = _ALIASES.get(first, "sysbox-runc" if first == "sysbox" else first)
    return name if name in KNOWN else None
