"""Where the nodes go: `--to`, and what a node is after it, always starting from what it is now."""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, structs
from msgspec.structs import replace

from kubectl_cgaudit.cgroups.version import KubeletVersion, needs_patch
from kubectl_cgaudit.cgroups.weights import (
    MAX_WEIGHT,
    MIN_SHARES,
    Formula,
    linear,
    linear_inverse,
    systemd_shares,
    systemd_weight,
)
from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect import runtime, states
from kubectl_cgaudit.detect.catalogue import Platform, catalogue, fits
from kubectl_cgaudit.detect.configured import platform_reserve
from kubectl_cgaudit.detect.runtime import FIRST_QUADRATIC, Runtime
from kubectl_cgaudit.detect.state import (
    SYSTEM_SLICE,
    CgroupVersion,
    Question,
    Setup,
    default_root_value,
    reserve_in_unit,
)
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.errors import UsageError

_FORMS = (
    "v2, runtime, v2+runtime, kubelet=1.35, runc=1.3.6, crun=1.28, youki=0.5.7, platform=NAME or like=NODE, combined with "
    "commas, or a states file"
)
_VERSIONED = f"(?:kubelet|platform|like|{'|'.join(FIRST_QUADRATIC)})="
_TARGET = re.compile(f"v2|runtime|{_VERSIONED}.+")
# A + inside a version is its build's: 1.3.6+azure.
_SEPARATOR = re.compile(rf",|\+(?=(?:v2|runtime|{_VERSIONED}[^,+]*)(?:$|[,+]))")


WHO_SET = Question("set_by", "unknown")
_UNNAMED = Question("unnamed", "unknown")


class Scenario(Struct, frozen=True):
    """A migration. None and empty parts leave the node as it is."""

    to: str
    """As the user wrote it; of a file its name."""
    v2: bool
    new_runtime: bool
    """Every runtime goes to a release with the quadratic formula, where it has one."""
    runtimes: tuple[Runtime, ...]
    kubelet: KubeletVersion | None
    rules: tuple[Rule, ...]
    platform: Platform | None = None
    """The release of a platform whose nodes they become, before anything else is changed."""
    like: str | None = None
    """The node that they become like, likewise."""
    file: str | None = None
    """The path of the file that says it. It is read once: what comes through a pipe comes once."""

    def describe(self) -> str:
        """The migration in words."""
        parts = []
        if self.platform:
            parts.append(f"every node as {self.platform.id} has it ({self.platform.note})")
        if self.like:
            parts.append(f"every node as {self.like} is now")
        if self.v2:
            parts.append("every node on cgroup v2")
        if self.new_runtime:
            other = "other " if self.runtimes else ""
            parts.append(f"every {other}runc and crun current (1.3.2+ and 1.23+)")
        parts += [f"every {target.name} at {target.version} ({target.formula})" for target in self.runtimes]
        if self.kubelet:
            parts.append(f"every kubelet at {self.kubelet}")
        if self.rules:
            parts.append(f"as {self.to} says")
        return ", ".join(parts)

    def fingerprint(self) -> str | None:
        """SHA-256 of what the rules of a file say, whatever its name, comments and layout; None without a file."""
        if not self.rules:
            return None
        # Without what is not said, or a later release with one key more would take the same file for another.
        said = [
            {key: value for key, value in structs.asdict(rule).items() if value and key != "where"}
            for rule in self.rules
        ]
        return hashlib.sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()


def parse(to: str) -> Scenario:
    """Read `--to`. Raises UsageError for anything that is neither a target nor a states file."""
    plain = to.replace(" ", "")
    words = _SEPARATOR.split(plain)
    # No file that happens to lie here changes what a target means.
    if not all(map(_TARGET.fullmatch, words)) and _is_file(to):
        return _from_file(to)
    if not plain:
        raise UsageError(f"--to is empty; write {_FORMS}")
    if len(words) == 1 and words[0] not in ("v2", "runtime") and "=" not in words[0]:
        raise UsageError(f"--to: {to!r} is neither a target nor a file; write {_FORMS}")
    said = _Said()
    for word in words:
        _read(word, said)
    runtimes = tuple(said.runtimes[name] for name in sorted(said.runtimes))
    return Scenario(to, said.v2, said.new_runtime, runtimes, said.kubelet, (), said.platform, said.like)


class _Said(Struct):
    """What the words of `--to` have said so far."""

    v2: bool = False
    new_runtime: bool = False
    kubelet: KubeletVersion | None = None
    platform: Platform | None = None
    like: str | None = None
    runtimes: dict[str, Runtime] = {}


def _read(word: str, said: _Said) -> None:
    """Take in a word of `--to`. Raises UsageError for one that is no target, or says something twice."""
    name, _, version = word.partition("=")
    if name in said.runtimes or (name == "kubelet" and said.kubelet):
        raise UsageError(f"--to names {name} twice; give one version")
    if name in ("platform", "like") and (said.platform or said.like):
        raise UsageError("--to names two platforms or nodes to be like; give one")
    if word == "v2":
        said.v2 = True
    elif word == "runtime":
        said.new_runtime = True
    elif name == "platform":
        said.platform = _platform(version)
    elif name == "like" and version:
        said.like = version
    elif name == "kubelet" and needs_patch(version):
        raise UsageError(f"--to: kubelet {states.TWO_QUOTAS}, as in kubelet=1.33.8")
    elif name == "kubelet" and (found := KubeletVersion.parse(version)):
        said.kubelet = found
    elif name in FIRST_QUADRATIC and version:
        said.runtimes[name] = _target(word)
    else:
        hint = "; containerd's version does not decide the formula, runc's does" if name == "containerd" else ""
        raise UsageError(f"--to: {word!r} is not a target; write {_FORMS}{hint}")


def _platform(name: str) -> Platform:
    known = {platform.id: platform for platform in catalogue().targets}
    if name not in known:
        raise UsageError(f"--to: {name!r} is not a platform cgaudit knows; there are {', '.join(sorted(known))}")
    return known[name]


def _is_file(to: str) -> bool:
    try:
        # A pipe too, as a shell makes one of <(...).
        return Path(to).exists() and not Path(to).is_dir()
    except (OSError, ValueError):  # A text that no file name can be.
        return False


def _target(word: str) -> Runtime:
    try:
        return runtime.parse(word)
    except UsageError as error:
        raise UsageError(f"--to: {error}") from None


def _from_file(to: str) -> Scenario:
    rules = states.load(to)
    for rule in rules:
        if rule.set_by:
            raise UsageError(
                f"--to {rule.where}: set_by says who set what is there now; say it in the file for --states, and here what "
                "system_slice and root become"
            )
    return Scenario(Path(to).name, v2=False, new_runtime=False, runtimes=(), kubelet=None, rules=rules, file=to)


class Way(Struct, frozen=True):
    """What a node may become, and how that answers what the target leaves open."""

    words: tuple[str, ...]
    answers: tuple[tuple[Question, int], ...]
    """Each question with the place of its answer; the first is the most plausible."""
    setup: Setup


def ways(
    scenario: Scenario,
    node: Node,
    now: Setup,
    handlers: Collection[str],
    like: Sequence["Way"] = (),
    *,
    version_known: bool = True,
) -> Iterator[Way]:
    """Yield what a node that is `now` may become. Raises UsageError as `after` does.

    A target speaks of one runtime, and not every handler says which it runs. Where only runc is spoken of they are taken to
    run it, as nearly all do; else each may run runc or one of the runtimes that are spoken of. And a value that somebody set
    at the root is systemd's or a kubelet's, and each makes another of it on the other cgroup version. `handlers` are those the
    node's pods use; what another one runs is no question. `like` is what the node may be that the target says to be like.
    """
    for model in like or (None,):
        start = (model.words, model.answers, _like(now, model.setup)) if model else ((), (), now)
        for way in _ways_from(scenario, node, start[2], handlers, version_known=version_known):
            yield Way((*start[0], *way.words), (*start[1], *way.answers), way.setup)


def _ways_from(
    scenario: Scenario, node: Node, start: Setup, handlers: Collection[str], *, version_known: bool
) -> Iterator[Way]:
    for words, answers, unnamed in _unnamed(scenario, start, handlers):
        setup = after(scenario, node, start, version_known=version_known, unnamed=unnamed)
        other, either = setup, _of_either(start)
        if either:
            other = after(scenario, node, start, version_known=version_known, unnamed=unnamed, by_kubelet=True)
        then = dict(other.top_level)
        told = {name for name, value in setup.top_level if then.get(name, value) != value}
        if not told:
            yield Way(words, answers, setup)
        else:
            names = " and ".join(name for name, _ in setup.top_level if name in told)
            known = told >= either
            by_kubelet = tuple(sorted({*other.enforced, *told}))
            yield Way((*words, f"systemd set {names}"), (*answers, (WHO_SET, 0)), replace(setup, reserves_known=known))
            yield Way(
                (*words, f"a kubelet set {names}"),
                (*answers, (WHO_SET, 1)),
                replace(other, reserves_known=known, enforced=by_kubelet),
            )


def _unnamed(
    scenario: Scenario, now: Setup, handlers: Collection[str]
) -> Iterator[tuple[tuple[str, ...], tuple[tuple[Question, int], ...], str]]:
    """Yield what a handler may run that does not say it, and what that assumes."""
    others = sorted({target.name or "" for target in scenario.runtimes} - {"runc"})
    if not others or not any(_says_nothing(handler, run) for handler, run in now.runtimes if handler in handlers):
        yield (), (), "runc"
        return
    for place, name in enumerate(("runc", *others)):
        yield (f"unnamed runtime is {name}",), ((_UNNAMED, place),), name


def _of_either(setup: Setup) -> set[str]:
    """The top-level cgroups to which somebody gave a value, and it is not known who."""
    default = default_root_value(setup.cgroup)
    given = {name for name, value in setup.top_level if value != default and name not in setup.enforced}
    return set() if setup.reserves_known else given


def after(
    scenario: Scenario,
    node: Node,
    now: Setup,
    *,
    version_known: bool = True,
    unnamed: str = "runc",
    by_kubelet: bool = False,
) -> Setup:
    """What a node that is `now` will be. Raises UsageError when a target file does not fit the node.

    Every container is created anew on the way: what is left over from before an earlier upgrade is gone. `unnamed` is what
    handlers run that do not say it; `by_kubelet`, that a kubelet set the values at the root of which nobody knows who did.
    """
    setup = replace(now, leftovers=(), measured=False)
    setup = _on_platform(setup, scenario.platform, node, by_kubelet=by_kubelet) if scenario.platform else setup
    setup = _on_cgroup(setup, "v2", by_kubelet=by_kubelet) if scenario.v2 else setup
    if scenario.new_runtime:
        setup = replace(setup, runtimes=tuple((name, runtime.upgraded(run)) for name, run in setup.runtimes))
    for target in scenario.runtimes:
        setup = replace(
            setup,
            runtimes=tuple(
                (name, target if _runs(name, run, unnamed) == target.name else run) for name, run in setup.runtimes
            ),
        )
    if scenario.kubelet:
        setup = _with_kubelet(setup, scenario.kubelet)
    rules = [rule for rule in scenario.rules if rule.matches(node)]
    # Whichever rule says the version, the values of all of them have its unit.
    versions = [rule.cgroup for rule in rules if rule.cgroup]
    if versions:
        setup = _on_cgroup(setup, versions[-1], by_kubelet=by_kubelet)
    for rule in rules:
        if (rule.root or rule.system_slice is not None) and not (version_known or versions):
            raise UsageError(
                f"{rule.where}: a value at the root is given for node {node.name}, but not its cgroup version, and "
                "without it the unit (shares on v1, weight on v2) is open: add cgroup: v1 or v2"
            )
        setup = _ruled(setup, rule)
    return setup


def _on_platform(setup: Setup, platform: Platform, node: Node, *, by_kubelet: bool) -> Setup:
    """Return what a node is that becomes one of this platform. What the platform's row does not say stays."""
    if platform.cgroup:
        setup = _on_cgroup(setup, platform.cgroup, by_kubelet=by_kubelet)
    default = platform.system_slice or default_root_value(setup.cgroup)
    reserve = platform_reserve(platform.reserve if fits(node, platform.reserve_match) else None, node)
    if platform.root is not None:
        setup = replace(
            setup,
            system_slice=default if reserve is None else reserve_in_unit(reserve, setup.cgroup),
            root=tuple(sorted(platform.root.items())),
            enforced=() if reserve is None else (SYSTEM_SLICE,),
            reserves_known=True,
        )
    if kubelet := KubeletVersion.parse(platform.kubelet or ""):
        known = setup.kubelet_version
        # A row says the least of a release's patches: a node that has a later one keeps it.
        kubelet = max(known, kubelet) if known and known[:2] == kubelet[:2] else kubelet
        setup = replace(_with_kubelet(setup, kubelet), rounded=platform.pod_quota == "rounded")
    return replace(
        setup,
        driver=platform.driver or setup.driver,
        services=platform.services or (SYSTEM_SLICE if platform.root is not None else setup.services),
        runtimes=tuple((handler, _of_formula(handler, run, platform.runtime)) for handler, run in setup.runtimes),
    )


def _with_kubelet(setup: Setup, kubelet: KubeletVersion) -> Setup:
    """Return the setup with another kubelet. What its platform says of a release's quotas it says of no other release."""
    here = setup.kubelet_version is not None and setup.kubelet_version[:2] == kubelet[:2]
    return replace(setup, kubelet_version=kubelet, rounded=setup.rounded and here)


def _of_formula(handler: str, run: Runtime, formula: Formula | None) -> Runtime:
    """Return the runtime in a release that has this formula; one that sets no weight, or always the same, stays."""
    if formula is None or run.formula in ("none", formula) or run.name in runtime.ALWAYS:
        return run
    return runtime.of_name(run.name or runtime.named_by(handler), formula)


def _like(now: Setup, model: Setup) -> Setup:
    """Return what a node becomes that is `now` and becomes like another; its own handlers that the other has not stay."""
    there = dict(model.runtimes)
    return replace(
        model,
        runtimes=tuple(
            (handler, run if run.formula == "none" else there.get(handler, run)) for handler, run in now.runtimes
        ),
    )


def _runs(handler: str, run: Runtime, unnamed: str) -> str:
    """Which runtime a handler runs; of an unnamed one its handler's name decides, if it can."""
    return run.name or runtime.named_by(handler) or unnamed


def _says_nothing(handler: str, run: Runtime) -> bool:
    return run.name is None and runtime.named_by(handler) is None


def _ruled(setup: Setup, rule: Rule) -> Setup:
    setup = _with_kubelet(setup, rule.kubelet_version) if rule.kubelet_version else setup
    runtimes = dict(setup.runtimes)
    runtimes.update((handler, run) for handler, run in rule.runtimes if handler in runtimes)
    return replace(
        setup,
        driver=rule.driver or setup.driver,
        kubelet_formula=rule.kubelet_formula or setup.kubelet_formula,
        system_slice=setup.system_slice if rule.system_slice is None else _fits(rule.system_slice, rule, setup),
        root=tuple(sorted({**dict(setup.root), **{n: _fits(v, rule, setup) for n, v in rule.root}}.items())),
        runtimes=tuple(sorted(runtimes.items())),
    )


def _fits(value: int, rule: Rule, setup: Setup) -> int:
    if (setup.cgroup == "v2" and value > MAX_WEIGHT) or (setup.cgroup == "v1" and value < MIN_SHARES):
        raise UsageError(f"{rule.where}: {value} is out of range for a node on cgroup {setup.cgroup} after the move")
    return value


def _on_cgroup(setup: Setup, version: CgroupVersion, *, by_kubelet: bool) -> Setup:
    if setup.cgroup == version:
        return setup
    default = default_root_value(setup.cgroup)

    def converted(name: str, value: int) -> int:
        of_kubelet = name in setup.enforced or (by_kubelet and value != default)
        if version == "v2":
            return linear(value) if of_kubelet else systemd_weight(value)
        return linear_inverse(value) if of_kubelet else systemd_shares(value)

    return replace(
        setup,
        cgroup=version,
        system_slice=converted(SYSTEM_SLICE, setup.system_slice),
        root=tuple((name, converted(name, value)) for name, value in setup.root),
    )
