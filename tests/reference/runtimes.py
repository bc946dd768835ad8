"""OCI runtimes: which formula they use, and what they do with a quota.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from dataclasses import dataclass, replace

from tests.reference.amounts import FORMULAS, release, rounded_up

FIRST_QUADRATIC = {"runc": "1.3.2", "crun": "1.23", "youki": "0.5.7"}
# none: they write no weight of containers on the host.
_ALWAYS = {"kata": "none", "runsc": "none", "sysbox-runc": "linear"}


@dataclass(frozen=True)
class Runtime:
    """What runs the containers of a handler: a program and its formula; an empty word is open."""

    program: str
    formula: str
    named: bool = True
    """Whether somebody says which program it is; otherwise it is only taken for one."""

    def quota(self, told: int | None, cgroup: str, driver: str) -> int | None:
        """The quota in the cgroup file of a container: docs/findings/CGA301.md."""
        if self.formula == "none":
            return None
        # A quadratic runc writes what systemd does, and one of no known name is taken for runc.
        as_systemd = self.formula == "quadratic" and self.program in ("runc", "")
        # crun leaves systemd's in its scope, and the raw one in the cgroup below. On v1 both are raw: docs/limits.md.
        below = self.program == "crun" and cgroup == "v2"
        return rounded_up(told) if driver == "systemd" and (as_systemd or below) else told


def runtime_of(text: str) -> Runtime:
    """A runtime as a states file says it: a program and its release, a program that has one formula, or a formula."""
    program, _, version = text.partition(" ")
    if program in FORMULAS:
        return Runtime("", program)
    if program in _ALWAYS:
        return Runtime(program, _ALWAYS[program])
    return Runtime(program, "quadratic" if release(version) >= release(FIRST_QUADRATIC[program]) else "linear")


def always() -> dict[str, Runtime]:
    """The handlers whose name says all of what they run."""
    return {name: runtime_of(name) for name in _ALWAYS}


def unsaid(handler: str) -> Runtime:
    """The runtime of a handler of which nobody says what it runs: a name that is a program's says that much."""
    if handler in FIRST_QUADRATIC:
        return Runtime(handler, "")
    return Runtime("", "")


def upgraded(runtime: Runtime) -> Runtime:
    """The same in a release with the quadratic formula, if there is one."""
    has_one = not runtime.program or runtime.program in FIRST_QUADRATIC
    return replace(runtime, formula="quadratic") if has_one else runtime
