"""Flags: what they are read into, and what is refused."""

import os
from datetime import UTC, datetime
from typing import Any

import click
import pytest

from kubectl_cgaudit.cli import options, policy, reading
from kubectl_cgaudit.cli.audit import group
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import live
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.detect.runtime import FIRST_QUADRATIC
from kubectl_cgaudit.errors import UsageError
from tests.support import GOLDEN, RECORDED_FLAGS, cluster, container, node, pod

NONE: dict[str, Any] = {
    "files": (),
    "states": None,
    "namespace": None,
    "all_namespaces": False,
    "selector": None,
    "kubeconfig": None,
    "context": None,
    "cluster": None,
    "user": None,
    "as_user": None,
    "as_groups": (),
    "request_timeout": "0",
    "kubelet": None,
    "kubelet_insecure_tls": False,
}


def source(**flags: Any) -> options.Source:
    return options.source(NONE | flags)


@pytest.mark.parametrize(
    ("flag", "value", "shown"),
    [
        ("kubeconfig", "x", "--kubeconfig"),
        ("context", "x", "--context"),
        ("cluster", "x", "--cluster"),
        ("user", "x", "--user"),
        ("as_user", "x", "--as"),
        ("as_groups", ("x",), "--as-group"),
    ],
)
def test_files_and_a_cluster_are_not_read_together(flag: str, value: Any, shown: str) -> None:
    with pytest.raises(UsageError, match=f"^-f reads files and {shown} speaks of a cluster; give one of them$"):
        source(files=("f",), **{flag: value})
    assert getattr(source(**{flag: value}), flag) == value


def test_standard_input_is_read_once() -> None:
    assert source(files=("-", "f")).files == ("-", "f")
    with pytest.raises(UsageError, match=r"^-f - can be given once: there is one standard input$"):
        source(files=("-", "f", "-"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--states", "a", "--states=b"], "--states is given twice (a and b)"),
        (["--states", "a", "tree", "--states", "b"], "--states is given twice (a and b)"),
        (["diff", "x", "y", "--states-after", "a", "--states-after", "b"], "--states-after is given twice (a and b)"),
        (["--to", "v2", "explain", "x/y", "--to", "v2"], "--to is given twice (v2 and v2)"),
        (["--to", "v2", "manifests", "--to", "runtime"], "--to is given twice (v2 and runtime)"),
        (["--policy", "a", "--policy", "b"], "--policy is given twice (a and b)"),
        (["report", "x", "--baseline", "a", "--baseline", "b"], "--baseline is given twice (a and b)"),
        (["nodes", "--kubelet=files:a", "--kubelet=files:b"], "--kubelet is given twice (files:a and files:b)"),
    ],
)
def test_of_what_holds_one_thing_none_is_dropped(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}, and holds one; ")


def test_what_is_given_once_counts_on_both_sides_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tree", "worker-c", *RECORDED_FLAGS, "--to", "v2"]) == 0
    behind = capsys.readouterr().out
    assert run([*RECORDED_FLAGS, "--to", "v2", "tree", "worker-c"]) == 0
    assert capsys.readouterr().out == behind
    assert run(["tree", "worker-c", *RECORDED_FLAGS]) == 0
    assert capsys.readouterr().out != behind


@pytest.mark.parametrize("words", [["-o", "csv"], ["tree", "-o", "json"], ["explain", "data/postgres-1", "-o", "json"]])
def test_a_target_comes_through_a_pipe(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for rule in (b"- {cgroup: v2}", b"- {system_slice: 39}"):
        reader, writer = os.pipe()
        os.write(writer, rule)
        os.close(writer)
        assert run([*words, *RECORDED_FLAGS, "--to", f"/dev/fd/{reader}"]) == 0
        os.close(reader)
        shown.append(capsys.readouterr().out)
    assert shown[0] != shown[1]


def test_an_empty_namespace_or_selector_is_none() -> None:
    found = source(namespace="", selector="")
    assert (found.namespace, found.selector) == (None, None)
    assert source(namespace="a", all_namespaces=True).namespace is None
    assert source(namespace="a").namespace == "a"


@pytest.mark.parametrize(
    ("kubelet", "flags", "refused"),
    [
        ("proxy", {}, ""),
        ("direct", {}, ""),
        ("files:d", {"files": ("f",)}, ""),
        ("files:d", {"as_user": "me"}, ""),
        ("proxy", {"as_user": "me", "as_groups": ("g",)}, ""),
        ("files:", {}, "'files:' is not proxy, direct or files:DIR"),
        ("folder", {}, "'folder' is not proxy, direct or files:DIR"),
        ("a-long-word", {}, "'a-long-word' is not proxy, direct or files:DIR"),
        ("", {}, "'' is not proxy, direct or files:DIR"),
        ("proxy", {"files": ("f",)}, "--kubelet=proxy asks a cluster"),
        ("direct", {"files": ("f",)}, "--kubelet=direct asks a cluster"),
        ("direct", {"as_user": "me"}, "asks as yourself"),
        ("direct", {"as_groups": ("g",)}, "asks as yourself"),
    ],
)
def test_how_kubelets_may_be_asked(kubelet: str, flags: dict[str, Any], refused: str) -> None:
    if not refused:
        assert source(kubelet=kubelet, **flags).kubelet == kubelet
        return
    with pytest.raises(UsageError) as error:
        source(kubelet=kubelet, **flags)
    assert refused in str(error.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", None),
        ("0s", None),
        ("7", 7.0),
        ("9999999", 9_999_999.0),
        ("30s", 30.0),
        ("0.5s", 0.5),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1h2m3s", 3723.0),
        ("3s1m", 63.0),
        ("500ms", 0.5),
        ("1500ms", 1.5),
        (".5m", 30.0),
        ("1.m", 60.0),
        ("1.5h", 5400.0),
        ("250000us", 0.25),
        ("250000µs", 0.25),
        ("250000μs", 0.25),
        ("500000000ns", 0.5),
        ("1m500ms", 60.5),
        ("0.0ms", None),
    ],
)
def test_a_request_timeout_in_seconds(text: str, seconds: float | None) -> None:
    assert source(request_timeout=text).timeout_seconds == seconds


@pytest.mark.parametrize(
    "text", ["", "10000000", "٣", "1.5", "-1", "1d", "s", ".s", "-1s", "1 s", "1s2", "1M", "1000000000h"]
)
def test_a_request_timeout_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--request-timeout: '.*' is not a time such as 30s or 1m$"):
        source(request_timeout=text)


@pytest.mark.parametrize(
    ("kubelet", "insecure", "asked"),
    [
        (None, False, None),
        (f"files:{GOLDEN}", False, None),
        ("proxy", False, live.Kubelets(direct=False, insecure=False, seconds=7.0)),
        ("direct", False, live.Kubelets(direct=True, insecure=False, seconds=7.0)),
        ("direct", True, live.Kubelets(direct=True, insecure=True, seconds=7.0)),
    ],
)
def test_what_the_flags_make_of_a_live_cluster(
    kubelet: str | None, insecure: bool, asked: live.Kubelets | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    found = cluster(node(), pod("p", container("c")))
    monkeypatch.setattr(live, "read", lambda *words, **more: given.append((words, more)) or found)
    monkeypatch.setattr(reading, "_with_saved", lambda read, chosen: read)
    flags = {"kubeconfig": "k", "context": "c", "cluster": "l", "user": "u", "as_user": "a", "as_groups": ("g",)}
    chosen = source(
        kubelet=kubelet,
        kubelet_insecure_tls=insecure,
        request_timeout="7",
        namespace="shop",
        selector="app=web",
        **{} if kubelet == "direct" else flags,
    )
    assert reading.collect(chosen, lambda what, done, total: None, measured=False) is found
    (((connection, namespace, selects, words, _, kubelets), more),) = given
    if kubelet != "direct":
        assert connection == Connection("k", "c", "l", "u", "a", ("g",), 7.0)
    assert (namespace, words, kubelets) == ("shop", "namespace shop, label app=web", asked)
    # What the answers of kubelets are compared with is kept wherever there are any.
    assert more == {"measured": kubelet is not None, "only": None}
    assert [selects(where, {"app": what}) for where in ("shop", "b") for what in ("web", "db")] == [
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("flags", "words", "chosen"),
    [({}, "", [1, 1]), ({"namespace": "a"}, "namespace a", [1, 0]), ({"selector": "x"}, "label x", [0, 0])],
)
def test_what_is_selected(flags: dict[str, Any], words: str, chosen: list[int]) -> None:
    selects, said = reading._selection(source(**flags))
    assert (said, [selects(namespace, {}) for namespace in ("a", "b")]) == (words, chosen)


@pytest.mark.parametrize("flag", ["policy", "baseline"])
def test_no_second_reader_of_standard_input(flag: str) -> None:
    with pytest.raises(UsageError, match=f"^--{flag} - would share standard input; give the path of a file$"):
        policy.read("-" if flag == "policy" else None, "-" if flag == "baseline" else None, "none", "probable")


@pytest.mark.parametrize("said", ["x", "1e5", "9" * 12, "9" * 30, "-" + "9" * 30, "9" * 5000])
def test_a_time_that_is_none_is_wrong_usage(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", said)
    with pytest.raises(UsageError, match=r"which is neither a time in seconds nor the word now$"):
        policy.epoch()


def test_the_time_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")
    assert policy.epoch() is None
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert policy.epoch() == datetime(1970, 1, 1, tzinfo=UTC)
    assert str(policy._today()) == "1970-01-01"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "now")
    now = policy.epoch()
    assert now is not None
    assert (now.microsecond, now.tzinfo) == (0, UTC)
    assert abs((datetime.now(UTC) - now).total_seconds()) < 60


def test_the_help_of_to_names_every_runtime_that_can_be_one() -> None:
    (found,) = [option for option in group.params if option.name == "to"]
    assert isinstance(found, click.Option)
    assert [name for name in FIRST_QUADRATIC if f" {name}=" not in (found.help or "")] == []
