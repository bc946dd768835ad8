"""The states file: a YAML list of rules that say what nodes run; later rules win.

- match: {name: worker-*, labels: {pool: blue}}
  cgroup: v2
  driver: systemd
  kubelet: linear            # or a version, or whose build it is (openshift, upstream), or several: linear 1.35 openshift
  system_slice: 20           # shares on cgroup v1, weight on v2
  runtimes: {default: runc 1.3.6, crun-old: crun 1.21, odd: linear}
  root: {docker: 100}        # other top-level cgroups that want CPU
  set_by: systemd            # or kubelet: who gave these two a value that is no default
"""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from kubectl_cgaudit import settings
from kubectl_cgaudit.cgroups.paths import DRIVERS, Driver
from kubectl_cgaudit.cgroups.version import KubeletVersion, needs_patch
from kubectl_cgaudit.cgroups.weights import FORMULAS, MAX_SHARES, MAX_WEIGHT, MIN_SHARES, MIN_WEIGHT, Formula
from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect import reading, runtime
from kubectl_cgaudit.detect.runtime import Runtime
from kubectl_cgaudit.detect.state import SETTERS, SYSTEM_SLICE, VERSIONS, Basis, CgroupVersion, Setter, State
from kubectl_cgaudit.errors import UsageError

_KEYS = ("match", "cgroup", "driver", "kubelet", "system_slice", "runtimes", "root", "set_by")
_MATCH_KEYS = ("name", "labels")
_BUILDS = {"openshift": "partitioned", "upstream": "all"}
"""Who built a kubelet, and which pods it counts in the Burstable slice."""
_OF_A_POLICY = {"thresholds", "severities", "exceptions"}
TWO_QUOTAS = "1.33 rounds a pod's quota from 1.33.8 on, and not before: give the full version"


class Rule(Struct, frozen=True):
    """One rule; None or empty where it says nothing."""

    where: str
    """`states.yaml rule 2`, for messages and as the source of what it says."""
    name: str | None
    labels: tuple[tuple[str, str], ...]
    cgroup: CgroupVersion | None
    driver: Driver | None
    kubelet_formula: Formula | None
    kubelet_version: KubeletVersion | None
    system_slice: int | None
    root: tuple[tuple[str, int], ...]
    runtimes: tuple[tuple[str, Runtime], ...]
    set_by: Setter | None
    kubelet_build: str | None
    """Of _BUILDS."""

    def matches(self, node: Node) -> bool:
        """Whether the rule speaks of this node."""
        named = self.name is None or fnmatchcase(node.name, self.name)
        return named and all(node.labels.get(label) == value for label, value in self.labels)


def load(path: str) -> tuple[Rule, ...]:
    """Read a states file. Raises UsageError that names the rule and what is wrong with it."""
    return parse(settings.read(path, "states file"), Path(path).name)


def parse(text: str, source: str) -> tuple[Rule, ...]:
    """Read the text of a states file; `source` names it in messages."""
    rules = settings.loaded(text, source)
    if not isinstance(rules, list) or not rules:
        raise UsageError(f"{source} {_instead(rules)}")
    return tuple(rule(each, f"{source} rule {number}") for number, each in enumerate(rules, start=1))


def _instead(said: object) -> str:
    """What stands where a list of rules should, and what to do."""
    write = "write a list of rules: - {match: {name: worker-*}, cgroup: v2}"
    if isinstance(said, dict):
        policy = "; if it is a policy, give it with --policy" if said.keys() & _OF_A_POLICY else ""
        return f"is a mapping; {write}{policy}"
    return f"is no list; {write}" if said else f"is empty; {write}"


def rule(given: object, where: str) -> Rule:
    """Read one rule; `where` names it in messages. Raises UsageError."""
    said = settings.mapping(given, where, _KEYS)
    match = settings.mapping(said.get("match", {}), f"{where}: match", _MATCH_KEYS)
    if "match" in said and not match:
        raise UsageError(f"{where}: match is empty; give it a name or labels, or leave it out to match every node")
    if len(said) == ("match" in said):
        raise UsageError(f"{where} says nothing of its nodes; add one of {', '.join(_KEYS[1:])}")
    labels = settings.texts(match.get("labels", {}), f"{where}: match: labels")
    if "labels" in match and not labels:
        raise UsageError(f"{where}: match: labels is empty, which every node fits; name a label, or leave it out")
    formula, version, build = _kubelet(said, where)
    return Rule(
        where=where,
        name=settings.text(match["name"], f"{where}: match: name") if "name" in match else None,
        labels=tuple(sorted(labels.items())),
        cgroup=settings.one_of(said, "cgroup", VERSIONS, where),
        driver=settings.one_of(said, "driver", DRIVERS, where),
        kubelet_formula=formula,
        kubelet_version=version,
        system_slice=_number(said["system_slice"], f"{where}: system_slice") if "system_slice" in said else None,
        root=_root(settings.texts(said.get("root", {}), f"{where}: root"), where),
        set_by=settings.one_of(said, "set_by", SETTERS, where),
        runtimes=tuple(
            sorted(
                (handler, _at(f"{where}: runtimes: {handler}", runtime.parse, value))
                for handler, value in settings.texts(said.get("runtimes", {}), f"{where}: runtimes").items()
            )
        ),
        kubelet_build=build,
    )


def _kubelet(said: Mapping[str, Any], where: str) -> tuple[Formula | None, KubeletVersion | None, str | None]:
    formula: Formula | None = None
    version: KubeletVersion | None = None
    build: str | None = None
    words = settings.text(said.get("kubelet", ""), f"{where}: kubelet").split()
    if "kubelet" in said and not words:
        raise UsageError(f"{where}: kubelet is empty; write linear, quadratic or a version such as 1.35.2")
    for word in words:
        if (formula if word in FORMULAS else build if word in _BUILDS else version) is not None:
            raise UsageError(f"{where}: kubelet: {word!r} is one too many; write a formula, a version, or one of each")
        if word in FORMULAS:
            formula = word
        elif word in _BUILDS:
            build = word
        elif not (version := KubeletVersion.parse(word)):
            raise UsageError(
                f"{where}: kubelet: {word!r} is neither linear, quadratic, openshift, upstream nor a version such as 1.35.2"
            )
        elif needs_patch(word):
            raise UsageError(f"{where}: kubelet: {TWO_QUOTAS}")
    return formula, version, build


def _root(said: Mapping[str, str], where: str) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for name, value in said.items():
        cgroup = _root_name(name, where)
        if cgroup in found:
            raise UsageError(f"{where}: root: {cgroup} stands twice, with and without /; leave one out")
        found[cgroup] = _number(value, f"{where}: root: {name}")
    return tuple(sorted(found.items()))


def _root_name(name: str, where: str) -> str:
    stripped = name.strip("/")
    if not stripped or "/" in stripped or stripped.startswith("kubepods"):
        raise UsageError(
            f"{where}: root: {name!r} is not a top-level cgroup beside kubepods, such as docker or user.slice"
        )
    if stripped == SYSTEM_SLICE:
        raise UsageError(f"{where}: root: {name} has a key of its own: write system_slice")
    return stripped


def _number(value: object, where: str) -> int:
    text = settings.text(value, where)
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and MIN_WEIGHT <= int(text) <= MAX_SHARES):
        raise UsageError(
            f"{where}: {text!r} is neither shares ({MIN_SHARES}..{MAX_SHARES}, cgroup v1) "
            f"nor a weight ({MIN_WEIGHT}..{MAX_WEIGHT}, v2)"
        )
    return int(text)


def _at(where: str, read: Callable[[str], Runtime], text: str) -> Runtime:
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def apply(rules: tuple[Rule, ...], node: Node, state: State) -> State:
    """The state with everything the matching rules say of this node."""
    own = KubeletVersion.parse(node.kubelet_version)
    for rule in rules:
        if rule.matches(node):
            state = _overlay(_without_other_units(state, rule), rule, own)
    return state


def _without_other_units(state: State, rule: Rule) -> State:
    """The state without values at the root that earlier rules gave for another cgroup version than this one says."""
    if not rule.cgroup or state.cgroup in (None, rule.cgroup) or state.basis_of("cgroup").confidence != "stated":
        return state
    words = f"root: values given for cgroup {state.cgroup} are left out, as {rule.where} says {rule.cgroup}"
    return without_root(state, words, lambda about: state.basis_of(about).confidence != "stated")


def without_root(state: State, words: str, stays: Callable[[str], bool]) -> State:
    """The state with those values at the root that stay, and the words where others went."""
    root = tuple(each for each in state.root if stays(f"root:{each[0]}"))
    system = state.system_slice if stays("system_slice") else None
    if (system, root) == (state.system_slice, state.root):
        return state
    usual = reading.defaults("").basis
    gone = {} if system == state.system_slice else {"system_slice": usual["system_slice"]}
    gone |= {} if root else {"root": usual["root"]}
    return structs.replace(
        state,
        system_slice=system,
        root=root,
        basis={**state.basis, **gone},
        contradictions=(*state.contradictions, words),
    )


def _overlay(state: State, rule: Rule, own: KubeletVersion | None) -> State:
    said: dict[str, Any] = {
        field: getattr(rule, field)
        for field in ("cgroup", "driver", "kubelet_formula", "kubelet_version", "system_slice", "set_by")
        if getattr(rule, field) is not None
    }
    if own and said.pop("kubelet_version", own) not in (own, (*own[:2], 0)):
        # The Node has it from the kubelet itself.
        words = f"kubelet: {rule.where} says {rule.kubelet_version}, but node.status.nodeInfo.kubeletVersion says {own}"
        said["contradictions"] = (*state.contradictions, words)
    basis = {field: Basis("stated", rule.where) for field in said}
    if rule.kubelet_formula:
        basis["kubelet"] = Basis("stated", rule.where)
    elif "kubelet_version" in said:
        # Which formula a version has nobody said.
        basis["kubelet"] = reading.defaults(f"v{rule.kubelet_version}").basis_of("kubelet")
    if rule.kubelet_build:
        said["platform"] = tuple(sorted({**dict(state.platform), "burstable": _BUILDS[rule.kubelet_build]}.items()))
        basis["burstable"] = Basis("stated", rule.where)
    if rule.root:
        said["root"] = tuple(sorted({**dict(state.root), **dict(rule.root)}.items()))
        basis.update(dict.fromkeys(["root", *(f"root:{name}" for name, _ in rule.root)], Basis("stated", rule.where)))
    if rule.runtimes:
        said["runtimes"] = tuple(sorted({**dict(state.runtimes), **dict(rule.runtimes)}.items()))
        basis.update({f"runtime:{handler}": Basis("stated", rule.where) for handler, _ in rule.runtimes})
    return structs.replace(state, basis={**state.basis, **basis}, **said)


def _says(rule: Rule, field: str) -> bool:
    if field == "system_slice":
        return rule.system_slice is not None
    return field.removeprefix("root: ") in dict(rule.root)


def check_units(rules: tuple[Rule, ...], node: Node, state: State) -> None:
    """Raises UsageError when the rules give a value at the root whose unit cannot be told, or that is out of its range."""
    values = [("system_slice", state.system_slice), *((f"root: {name}", value) for name, value in state.root)]
    for field, value in values:
        said = [rule for rule in rules if rule.matches(node) and _says(rule, field)]
        if value is None or not said:
            continue
        where = said[-1].where
        if state.settled_cgroup is None:
            raise UsageError(
                f"{where}: {field} is given for node {node.name} but not its cgroup version, "
                "and without it the unit (shares on v1, weight on v2) is open: add cgroup: v1 or v2"
            )
        if state.cgroup == "v2" and value > MAX_WEIGHT:
            raise UsageError(
                f"{where}: {field}: {value} is no weight ({MIN_WEIGHT}..{MAX_WEIGHT}) for the v2 node {node.name}"
            )
        if state.cgroup == "v1" and value < MIN_SHARES:
            raise UsageError(
                f"{where}: {field}: {value} is no shares ({MIN_SHARES}..{MAX_SHARES}) for the v1 node {node.name}"
            )
