"""The catalogue of platforms: never wrong where it claims more than a hint, and nothing it knew is lost."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_cgaudit.collect import reduce, wire
from kubectl_cgaudit.collect.model import Node, NodeKind
from kubectl_cgaudit.detect import catalogue
from kubectl_cgaudit.detect.catalogue import Row, Span, evidence
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.same import Same
from tests import support
from tools import platforms

STRINGS = Path(__file__).parent / "node_strings.yaml"
SUBJECTS = {"runtime": "runtime:default", "cgroup": "cgroup"}
SETTLED = ("certain", "likely")
VALUES = {
    "cgroup": (None, "v1", "v2"),
    "runtime:default": (None, "linear", "quadratic", "none"),
    "host": ("container",),
    "accepts": ("v1",),
    "services": ("runtime.slice",),
    "root:runtime.slice": ("default",),
    "system_slice": ("295",),
    "reserve": ("openshift-4.22",),
    "kubepods": (None, "capacity"),
    "burstable": ("partitioned",),
    "pod-quota": ("rounded",),
    "conmon": ("pod",),
    "inner": ("none",),
}
FIELDS = {"kubelet", "runtime", "os", "kernel", "name", "provider"}
AKS = "kubernetes.azure.com/node-image-version"


@cache
def plain() -> Node:
    return reduce.node(msgspec.convert(support.node(), wire.Node), Same())


def node(
    kubelet: str = "v1.33.5",
    runtime: str = "",
    os: str = "",
    kernel: str = "6.8.0",
    name: str = "n1",
    labels: dict[str, str] | None = None,
    kind: NodeKind = "linux",
    provider: str = "",
) -> Node:
    return replace(
        plain(),
        name=name,
        kind=kind,
        provider=provider,
        labels=labels or {},
        kubelet_version=kubelet,
        runtime_version=runtime,
        os_image=os,
        kernel=kernel,
    )


@cache
def strings() -> tuple[tuple[dict[str, Any], Node], ...]:
    rows = yaml.safe_load(STRINGS.read_text(encoding="utf-8"))
    fields = (*sorted(FIELDS), "labels")
    return tuple((row, node(**{field: row[field] for field in fields if field in row})) for row in rows)


@cache
def platform_nodes() -> tuple[tuple[dict[str, Any], Node], ...]:
    """The nodes of docs/platforms.md."""
    fields = (*sorted(FIELDS), "labels")
    return tuple((row, node(**{field: row[field] for field in fields if field in row})) for row in platforms.rows())


def every_node() -> list[Node]:
    return [of for _, of in (*strings(), *platform_nodes())]


def said(of: Node) -> dict[str, str]:
    """What is said first of each subject, as `likely quadratic`; another piece about it was read from other strings."""
    found: dict[str, str] = {}
    read: dict[str, set[str]] = {}
    for piece in evidence(of):
        found.setdefault(piece.about, f"{piece.strength} {piece.value}")
        assert not read.setdefault(piece.about, set()) & set(piece.strings)
        read[piece.about] |= set(piece.strings)
    return found


def titles() -> list[str]:
    return [f"{row['table']}: {row['kubelet']} {row['runtime']} {row['os']}" for row, _ in strings()]


@pytest.mark.parametrize(("row", "of"), strings(), ids=titles())
def test_node_strings(row: dict[str, Any], of: Node) -> None:
    """What is settled is true; and everything that was known before is still known, as surely as before."""
    says = said(of)
    for name, about in SUBJECTS.items():
        strength, _, value = says.get(about, "").partition(" ")
        assert strength not in SETTLED or value == row["truth"][name]
        assert strength != "probable" or row["truth"][name] in (value, None)
        assert says.get(about) == row["says"][name]


@pytest.mark.parametrize(
    ("row", "of"), platform_nodes(), ids=[f"{row['platform']} {row['kubelet']}" for row, _ in platform_nodes()]
)
def test_what_is_said_of_the_nodes_of_each_platform(row: dict[str, Any], of: Node) -> None:
    """From the node and its pods alone: no wrong answer is more than probable, and what overrode a wrong default is named."""
    raw = support.node(
        of.name, kubelet=of.kubelet_version, labels=of.labels, osImage=of.os_image, kernelVersion=of.kernel
    )
    raw["status"]["nodeInfo"]["containerRuntimeVersion"] = of.runtime_version
    raw["spec"] = {"providerID": f"{of.provider}://x"} if of.provider else {}
    objects = support.cluster(raw, support.pod("p", support.container("c", "1"), on=of.name))
    (judged,) = support.audited(objects).nodes
    known = {"cgroup": judged.known["cgroup"], "formula": judged.known["runtime:default"]}
    for what, answer in known.items():
        assert row["says"][what] == (f"{answer.value} ({answer.confidence})" if answer.value else "not known")
        if platforms.is_wrong(row, what):
            assert answer.confidence == "probable"
            assert answer.override
            assert row["overridden"]


def answered(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Of how many rows the tool says something that is probable or better."""
    return {what: sum(row["says"][what] != "not known" for row in rows) for what in ("cgroup", "formula")}


def test_most_nodes_of_the_platforms_have_an_answer_and_one_probable_answer_is_wrong() -> None:
    rows = platforms.rows()
    assert (len(rows), answered(rows)) == (146, {"cgroup": 124, "formula": 91})
    seen = platforms.seen(rows)
    assert (len(seen), answered(seen)) == (92, {"cgroup": 79, "formula": 63})
    assert [row["platform"] for row in rows if platforms.is_wrong(row, "cgroup")] == ["the recorded worker-c"]
    assert not [row for row in rows if platforms.is_wrong(row, "formula")]


def test_the_page_of_platforms_is_up_to_date() -> None:
    written = Path(platforms.__file__).parent.parent / "docs" / "platforms.md"
    assert written.read_text(encoding="utf-8") == platforms.page(platforms.rows())


def test_there_are_enough_node_strings() -> None:
    seen = {
        (row["kubelet"], row["runtime"], row["os"], str(row.get("labels")), row.get("name")) for row, _ in strings()
    }
    assert len(seen) >= 120
    platforms = Counter(re.split(r"[ ,]", row["table"])[0] for row, _ in strings())
    assert platforms["containerd_counterexamples"] == 13
    for table in ("k3s", "rke2", "k0s", "talos", "bottlerocket", "eks_ami", "aks_vhd", "flatcar", "kind", "kops"):
        assert platforms[table] > 0
    assert {row["truth"]["runtime"] for row, _ in strings()} == {"linear", "quadratic", None}


def test_a_wrong_hint_is_only_ever_containerds_pairing() -> None:
    wrong = {
        (piece.source, row["table"])
        for row, of in strings()
        for piece in evidence(of)
        if piece.about == "runtime:default" and row["truth"]["runtime"] not in (None, piece.value)
    }
    assert wrong == {
        ("platform rule containerd-pairing-linear", "containerd_counterexamples canonical k8s-snap release-1.32")
    }


def test_every_row_is_whole_and_dated() -> None:
    known = catalogue.catalogue()
    every = (*known.rows, *known.targets, *known.commands)
    assert len({row.id for row in every}) == len(every)
    for row in known.rows:
        assert row.id
        assert row.source
        assert row.status
        assert row.note
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", row.date)
        assert {field for field in row.match if not field.startswith("label:")} <= FIELDS
        assert set(row.match.values()) <= set(known.patterns)
        assert all(set(ranges) <= set(row.match) for ranges in row.within)
        assert row.about in catalogue.SUBJECTS or row.about.startswith("root:")
        assert row.value in VALUES.get(row.about, (row.value,))
        assert bool(row.override) == (row.confidence == "probable")
        assert row.status != "unknown" or (row.value is None and row.source.startswith("no source "))
    whole = (*known.rows, *known.commands)
    names = {name for row in whole for name in row.match.values()}
    names |= {name for target in known.targets for name in (*target.next_of.values(), *target.reserve_match.values())}
    assert names == set(known.patterns)


def test_only_verified_rows_are_likely_and_of_runtimes_those_about_the_platforms_own() -> None:
    for row in catalogue.catalogue().rows:
        if row.confidence == "likely":
            assert row.status == "verified"
            assert row.value
            if row.about == "runtime:default":
                assert row.within
                assert len(row.match) > 1
                assert row.match["runtime"] not in ("containerd-any", "containerd-pairing")
        elif row.value is None:
            assert row.status != "inferred"


def test_a_containerd_or_crio_version_alone_is_never_more_than_a_hint() -> None:
    alone = [
        row for row in catalogue.catalogue().rows if set(row.match) == {"runtime"} and row.about == "runtime:default"
    ]
    assert {row.confidence for row in alone} == {"hint"}
    assert len(alone) > 4


def test_every_target_and_command_is_whole_and_dated() -> None:
    known = catalogue.catalogue()
    for each in (*known.targets, *known.commands):
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", each.date)
        assert each.source
        assert each.id
    assert {each.about for each in known.commands} == {"cgroup", "reserve", "runtime:default"}
    assert all(each.needs and each.shows for each in known.commands)


V1_RESERVED = "- {cgroup: v1, system_slice: 2048, set_by: kubelet, runtimes: {default: runc 1.1.5}}"


def becomes(platform: str, *roles: str) -> Setup:
    """What a node with a reserve of 2 CPUs becomes that moves to a platform."""
    labels = {f"node-role.kubernetes.io/{role}": "" for role in roles}
    objects = support.cluster(support.node(labels=labels), support.pod("p", support.container("c", "1")))
    return support.compared(objects, V1_RESERVED, f"platform={platform}")[0].cases[0].after


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("openshift-4.19", ("v2", "1.32.0", "systemd", "linear", 100, {}, "system.slice")),
        ("openshift-4.20", ("v2", "1.33.13", "systemd", "linear", 100, {}, "system.slice")),
        ("openshift-4.21", ("v2", "1.34.0", "systemd", "linear", 100, {}, "system.slice")),
        ("openshift-4.22", ("v2", "1.35.0", "systemd", "quadratic", 20, {}, "system.slice")),
        ("eks-al2023", ("v2", "1.33.13", "systemd", "quadratic", 100, {"runtime.slice": 100}, "runtime.slice")),
        ("eks-bottlerocket", ("v2", "1.33.13", "systemd", "quadratic", 100, {"runtime.slice": 100}, "runtime.slice")),
        ("aks-ubuntu-24.04", ("v2", "1.33.13", "systemd", "quadratic", 100, {}, "system.slice")),
        ("aks-azurelinux-3", ("v2", "1.33.13", "systemd", "quadratic", 100, {}, "system.slice")),
        ("gke", ("v2", "1.33.13", "systemd", "linear", 79, {}, "system.slice")),
        ("talos", ("v2", "1.33.13", "cgroupfs", "quadratic", 295, {}, "system.slice")),
        ("k3s", ("v1", "1.33.13", "systemd", "quadratic", 2048, {}, "system.slice")),
        ("rke2", ("v1", "1.33.13", "systemd", "quadratic", 2048, {}, "system.slice")),
        ("ubuntu-24.04", ("v2", "1.33.13", "systemd", "quadratic", 79, {}, "system.slice")),
        ("ubuntu-26.04", ("v2", "1.33.13", "systemd", "quadratic", 79, {}, "system.slice")),
        ("rhel-9", ("v2", "1.33.13", "systemd", "linear", 79, {}, "system.slice")),
        ("rhel-10", ("v2", "1.33.13", "systemd", "linear", 79, {}, "system.slice")),
        ("debian-12", ("v2", "1.33.13", "systemd", "linear", 79, {}, "system.slice")),
        ("debian-13", ("v2", "1.33.13", "systemd", "linear", 79, {}, "system.slice")),
    ],
)
def test_a_node_becomes_what_a_platform_runs_as_far_as_sources_say(platform: str, expected: tuple[object, ...]) -> None:
    """A reserve of 2 CPUs stays where nothing is said of the root: 2048 shares are weight 79. No kubelet goes back a patch."""
    setup = becomes(platform)
    formula = setup.runtime("default").formula
    at_root = setup.system_slice, dict(setup.root), setup.services
    assert (setup.cgroup, str(setup.kubelet_version), setup.driver, formula, *at_root) == expected


def test_there_is_such_a_test_of_every_platform() -> None:
    cases = test_a_node_becomes_what_a_platform_runs_as_far_as_sources_say.pytestmark[0].args[1]
    assert {platform for platform, _ in cases} == {target.id for target in catalogue.catalogue().targets}


@pytest.mark.parametrize(
    ("roles", "system_slice"),
    [(("worker",), 20), (("infra", "worker"), 20), (("control-plane", "master"), 100), (("arbiter",), 100)],
)
def test_openshift_4_22_enforces_its_reserve_on_workers_only(roles: tuple[str, ...], system_slice: int) -> None:
    """machine-config-operator release-4.22: templates/worker has systemReservedCgroup, templates/master and arbiter have not."""
    assert becomes("openshift-4.22", *roles).system_slice == system_slice


def test_every_range_reads_numbers_its_pattern_has() -> None:
    known = catalogue.catalogue()
    for row in known.rows:
        for ranges in row.within:
            for field, spans in ranges.items():
                groups = re.compile(known.patterns[row.match[field]]).groups
                for span in map(Span.parse, spans.split()):
                    assert 0 < max(len(span.low), len(span.high)) <= groups
                    shared = min(len(span.low), len(span.high))
                    assert span.low[:shared] <= span.high[:shared]


@pytest.mark.parametrize("name", sorted(catalogue.catalogue().patterns))
def test_every_pattern_compiles_and_is_bounded(name: str) -> None:
    pattern = catalogue.catalogue().patterns[name]
    assert re.compile(pattern, re.ASCII)
    assert pattern.isascii()
    unescaped = re.sub(r"\\.|\[[^]]*\]", "", pattern)
    assert not re.search(r"[*+]|,\}|(?<!\()\?\?", unescaped)


def fitting(of: Node) -> list[Row]:
    """Every row that fits a node, also those that stronger or earlier ones keep silent."""
    seen = catalogue._strings(of)
    return [rule.row for rule in catalogue._rules() if rule.condition.fits(seen)]


def test_every_row_is_exercised() -> None:
    """By a node it speaks for, or whose weaker rows it silences."""
    spoken: set[str] = set()
    for of in every_node():
        rows = fitting(of)
        for about in {row.about for row in rows}:
            mine = sorted((row for row in rows if row.about == about), key=lambda row: row.confidence != "likely")
            spoken.update(row.id for row in mine[:1])
        spoken.update(piece.source.removeprefix("platform rule ") for piece in evidence(of))
        # What says that no source was found keeps nothing silent, so it need not be the first.
        spoken.update(row.id for row in rows if row.status == "unknown")
    assert {row.id for row in catalogue.catalogue().rows} - spoken == set()


@pytest.mark.parametrize("table", ["k3s", "rke2", "k0s", "talos", "flatcar", "eks-al2023", "aks"])
def test_a_platforms_likely_ranges_do_not_overlap(table: str) -> None:
    """No string of one formula's rows is also one of the other's."""
    for of in every_node():
        likely = [row for row in fitting(of) if row.confidence == "likely" and row.id.startswith(table)]
        likely = [row for row in likely if row.about == "runtime:default"]
        assert len({row.value for row in likely}) <= 1


def test_platforms_that_disagree_settle_nothing() -> None:
    both = node(
        kubelet="v1.34.1+k0s.0",
        runtime="containerd://1.7.28",
        os="Ubuntu 22.04.5 LTS",
        labels={AKS: "AKSUbuntu-2204gen2containerd-202510.29.0"},
    )
    assert {row.value for row in fitting(both) if row.confidence == "likely"} == {"linear", "quadratic"}
    assert said(both) == {"cgroup": "probable v2"}


def test_nodes_that_differ_in_name_only_are_looked_at_once() -> None:
    """A pool of AKS has thousands of them, and a row asks what a name is like."""
    catalogue._said.cache_clear()
    named = [
        node("v1.35.5", "containerd://2.1.7-2", "Ubuntu 24.04.4 LTS", "6.8.0-1056-azure", name)
        for name in ("aks-a", "aks-b")
    ]
    assert list(evidence(named[0])) == list(evidence(named[1]))
    assert catalogue._said.cache_info().misses == 1


@pytest.mark.parametrize("kind", ["windows", "virtual"])
def test_nodes_without_cgroups_have_none(kind: NodeKind) -> None:
    assert list(evidence(node("v1.33.6+rke2r1", "containerd://2.1.5-k3s1", "Ubuntu 24.04.3 LTS", kind=kind))) == []


def test_a_piece_says_what_was_seen_and_by_which_rule() -> None:
    pieces = evidence(node("v1.33.6+k3s1", "containerd://2.1.5-k3s1.33", "Ubuntu 24.04.3 LTS"))
    runtime, cgroup = sorted(pieces, key=lambda piece: piece.about, reverse=True)
    assert cgroup.source == "platform rule ubuntu-v2"
    assert cgroup.saw.startswith("os Ubuntu 24.04.3 LTS: ")
    assert runtime.source == "platform rule k3s-quadratic"
    assert runtime.saw == (
        "kubelet v1.33.6+k3s1, runtime containerd://2.1.5-k3s1.33: this k3s brings runc 1.3.3 or newer"
    )


@pytest.mark.parametrize(
    ("kubelet", "runtime", "os"),
    [
        ("v1.33.6+k3s1-dirty", "containerd://2.1.5-k3s1.33", ""),
        ("v1.33.6+k3s1\n", "containerd://2.1.5-k3s1.33", ""),
        ("v1.٣٣.6+k3s1", "containerd://2.1.5-k3s1.33", ""),
        ("xv1.33.6+k3s1", "containerd://2.1.5-k3s1.33", ""),
        ("v1.33.6+k3s1", "containerd://2.1.5-k3s1.33 ", ""),
        ("v1.33.6+k3s1", "docker://2.1.5-k3s1.33", ""),
        ("v1.33.6", "containerd://2.1.4", "Talos (v1.11.3-dirty)"),
        ("v1.33.6", "containerd://2.1.4", "My Talos (v1.11.3)"),
        ("v1.33.6", "containerd://2.2.0", "Talos (v1.11.3)"),
        ("v1.33.6", "containerd://2.1.5", "Flatcar Container Linux by Kinvolk 4459.2.4 (Oklo)"),
        ("v1.33.6", "containerd://2.1.4", "Amazon Linux 2023.9.20251105"),
        ("v1.33.6", "containerd://1.7.28", "Debian GNU/Linux 13 (trixie)"),
    ],
)
def test_what_is_not_quite_a_platform_is_not_likely(kubelet: str, runtime: str, os: str) -> None:
    assert not said(node(kubelet, runtime, os)).get("runtime:default", "").startswith("likely")


def test_ends_of_a_range_count_as_far_as_they_are_written() -> None:
    assert (1, 33, 9, 2) in Span.parse("1.33.6..1.33")
    assert (1, 33, 5, 1) not in Span.parse("1.33.6..1.33")
    assert (1, 34, 0) not in Span.parse("1.33.6..1.33")
    assert (1, 33, 13) in Span.parse("1.33.1..1.33.13.1")
    assert (1, 33, 13, 2) not in Span.parse("1.33.1..1.33.13.1")
    assert (2, 1, 5) in Span.parse("2.1.5")
    assert (2, 1, 6) not in Span.parse("2.1.5")
    assert (0, 9) in Span.parse("..1.30")
    assert (9,) in Span.parse("1.35..")


HOSTILE = st.text(max_size=300) | st.builds(
    lambda start, middle, times, end: start + middle * times + end,
    st.sampled_from(
        sorted({str(row[field]) for row, _ in strings() for field in FIELDS if field in row} | {"", "v1.", "Talos ("})
    ),
    st.sampled_from(["", "1", "0.", "-k3s1", " ", "(", "a", "\0", "\u0660", "\u202e", "\U0001f600", "control-plane"]),
    st.sampled_from([0, 1, 2, 60, 10_000]),
    st.sampled_from(["", ")", "\n", " LTS", "1"]),
)


LONG = ("v1.33.6+k3s1", "containerd://2.1.5-k3s1.33", "K3s v1.33.6+k3s1", "9" * 10_000, "worker" * 2_000)


def test_strings_of_any_length_are_still_understood() -> None:
    assert [(piece.about, piece.strength) for piece in evidence(node(*LONG, {}))] == [
        ("runtime:default", "likely"),
        ("host", "likely"),
    ]


@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, st.dictionaries(st.just(AKS) | HOSTILE, HOSTILE, max_size=3))
@example(*LONG, {})
def test_no_string_breaks_it(
    kubelet: str, runtime: str, os: str, kernel: str, name: str, labels: dict[str, str]
) -> None:
    for piece in evidence(node(kubelet, runtime, os, kernel, name, labels)):
        assert piece.about in catalogue.SUBJECTS or piece.about == "root:runtime.slice"
        assert piece.saw.isascii()
        assert piece.saw.isprintable()
        assert len(piece.saw) < 600
