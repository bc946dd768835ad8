"""Which formula a runtime's version uses."""

from typing import Any

import pytest

from kubectl_cgaudit.detect import runtime
from kubectl_cgaudit.detect.measured import WeighedContainer
from kubectl_cgaudit.errors import UsageError


@pytest.mark.parametrize(
    ("text", "formula", "rounds"),
    [
        ("runc 1.1.15", "linear", False),
        ("runc 1.2.9", "linear", False),
        ("runc 1.2", "linear", False),
        ("runc 1.3.0", "linear", False),
        ("runc 1.3.1", "linear", False),
        ("runc 1.3.0-rc.2", "linear", False),
        ("runc 1.3.2", "quadratic", True),
        ("runc v1.3.6", "quadratic", True),
        ("runc 1.4.0-rc.1", "quadratic", True),
        ("runc 1.5.1", "quadratic", True),
        ("runc 1.1.5+ds1-1+deb12u1", "linear", False),
        ("runc 1.3.3-0ubuntu1~24.04.3", "quadratic", True),
        ("runc=1.3.6", "quadratic", True),
        ("runc 1.4", "quadratic", True),
        ("crun 1.21", "linear", True),
        ("crun 1.22", "linear", True),
        ("crun 1.23", "quadratic", True),
        ("crun 1.23.1-2.el9_6", "quadratic", True),
        ("crun 1.8.1-1+deb12u1", "linear", True),
        ("youki 0.5.6", "linear", False),
        ("youki 0.5.7", "quadratic", False),
        ("runsc", "none", False),
        ("gvisor", "none", False),
        ("sysbox", "linear", False),
        ("kata 3.2", "none", False),
        ("linear", "linear", False),
        ("quadratic", "quadratic", True),
    ],
)
def test_formula_and_rounding_follow_from_name_and_version(text: str, formula: str, rounds: bool) -> None:
    found = runtime.parse(text)
    assert (found.formula, found.rounds_quota) == (formula, rounds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runc", "'runc' needs a version, as in 'runc 1.3.2'"),
        ("runc 1.3", "runc 1.3 holds both formulas (1.3.2 is the first quadratic one): give the full version"),
        ("runc 1", "runc 1 holds both formulas (1.3.2 is the first quadratic one): give the full version"),
        ("runc abc", "'abc' is not a version of runc, such as 1.3.2"),
        (
            "rnuc 1.3.6",
            "'rnuc' is not a runtime cgaudit knows (runc, crun, youki, runsc, sysbox-runc, kata, linear, quadratic)",
        ),
        ("", "'' is not a runtime; write its name and version as in 'runc 1.3.6', or linear or quadratic"),
        (
            "runc 1.3.6 x",
            "'runc 1.3.6 x' is not a runtime; write its name and version as in 'runc 1.3.6', or linear or quadratic",
        ),
    ],
)
def test_what_does_not_decide_the_formula_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        runtime.parse(text)
    assert str(caught.value) == message


def test_containerd_does_not_decide_it() -> None:
    with pytest.raises(UsageError, match="containerd's or CRI-O's version does not decide it: name the runtime"):
        runtime.parse("containerd 2.2.0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("runc 1.1.15", "runc 1.3.2 (quadratic)"),
        ("crun 1.21", "crun 1.23 (quadratic)"),
        ("youki 0.5.6", "youki 0.5.7 (quadratic)"),
        ("runc 1.5.1", "runc 1.5.1 (quadratic)"),
        ("linear", "quadratic"),
        ("gvisor", "runsc (none)"),
        ("kata", "kata (none)"),
    ],
)
def test_a_new_release_where_there_is_one(text: str, expected: str) -> None:
    assert str(runtime.upgraded(runtime.parse(text))) == expected


@pytest.mark.parametrize(
    ("handler", "name"),
    [
        ("CRUN-old", "crun"),
        ("kata-qemu", "kata"),
        ("gvisor", "runsc"),
        ("sysbox-runc", "sysbox-runc"),
        ("sysbox", "sysbox-runc"),
        ("runc", "runc"),
        ("runc.v2", "runc"),
        ("fast", None),
    ],
)
def test_a_handlers_name_may_speak_of_its_runtime(handler: str, name: str | None) -> None:
    assert runtime.named_by(handler) == name


def formula(name: str, formula: Any, started: str, handler: str = "default") -> WeighedContainer:
    return WeighedContainer("default", name, "app", handler, formula, 59, 512, started)


@pytest.mark.parametrize(
    ("text", "formula", "rounds"),
    [
        ("RUNC 1.3.6", "quadratic", True),
        ("runc 1.1.15", "linear", False),
        ("runc 1.3", None, None),
        ("runc 1.4", "quadratic", True),
        ("runc 1.2", "linear", False),
        ("crun 1.20", "linear", True),
        ("crun 1.28", "quadratic", True),
        ("kata 3", "none", False),
    ],
)
def test_more_runtimes(text: str, formula: str | None, rounds: bool | None) -> None:
    if formula is None:
        with pytest.raises(UsageError, match="holds both formulas"):
            runtime.parse(text)
        return
    found = runtime.parse(text)
    assert (found.formula, found.rounds_quota) == (formula, rounds)


def test_what_decides_no_formula_is_hinted_at() -> None:
    for name in ("containerd", "CRI-O"):
        with pytest.raises(UsageError, match="containerd's or CRI-O's version does not decide it"):
            runtime.parse(f"{name} 1.7")
    with pytest.raises(UsageError, match=r"linear, quadratic\)$"):
        runtime.parse("other 1.7")


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ("runc 1.1.15", ("runc", "quadratic", True)),
        ("crun 1.20", ("crun", "quadratic", True)),
        ("linear", (None, "quadratic", False)),
        ("kata", ("kata", "none", False)),
        ("runsc", ("runsc", "none", False)),
        ("runc 1.3.6", ("runc", "quadratic", True)),
    ],
)
def test_what_an_upgrade_makes_of_a_runtime(given: str, after: tuple[str | None, str, bool]) -> None:
    found = runtime.upgraded(runtime.parse(given))
    assert (found.name, found.formula) == after[:2]


def test_one_number_may_hold_both_formulas() -> None:
    for text in ("crun 1", "runc 1", "runc 1.3"):
        with pytest.raises(UsageError, match="holds both formulas"):
            runtime.parse(text)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("runc 1.3.6-rc.1", "linear"),
        ("runc 1.3.6", "quadratic"),
        ("runc 1.4.0-rc.1", "quadratic"),
        ("runc 2.3.0-rc.1", "quadratic"),
    ],
)
def test_previews(text: str, formula: str) -> None:
    assert runtime.parse(text).formula == formula


@pytest.mark.parametrize("name", ["runc", "crun"])
def test_an_upgrade_of_a_runtime_without_a_version(name: str) -> None:
    old = runtime.Runtime(name, None, "linear", rounds_quota=name == "crun")
    assert runtime.upgraded(old) == runtime.Runtime(name, None, "quadratic", rounds_quota=True)
