"""What is read from a kubelet's own texts: metrics, pods and configuration, and what is refused."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubectl_cgaudit.collect import kubelet_answers, metrics
from kubectl_cgaudit.errors import InputError
from tests.kubelet_support import HOSTILE_METRICS, NODES, golden, golden_pods, row
from tests.support import golden_json


@pytest.mark.parametrize(
    ("node", "rows", "kubepods", "root", "pods"),
    [("worker-a", 44, 3777, 0, 11), ("worker-b", 41, 3462, 0, 9), ("worker-c", 30, 3788, 1024, 7)],
)
def test_recorded_shares(node, rows, kubepods, root, pods):
    text = golden(node, "/metrics/cadvisor")
    shares = metrics.shares(text)
    assert sum(line.startswith(b"container_spec_cpu_shares{") for line in text.splitlines()) == rows
    assert len(shares) == rows
    assert (shares["/kubepods.slice"], shares["/"]) == (kubepods, root)
    named = metrics.pods_named(text)
    assert len(named) == pods
    assert named <= golden_pods()[node]


def test_recorded_shares_are_the_kernels_weights():
    shares = {node: metrics.shares(golden(node, "/metrics/cadvisor")) for node in NODES}
    levels = {"kubepods", "qos", "pod", "pause", "container"}
    missing = []
    compared = 0
    for truth in golden_json("cgroups.json"):
        if truth["level"] not in levels:
            continue
        shown = shares[truth["node"]].get(truth["cgroup"])
        if shown is None:
            missing.append((truth["pod"], truth["level"]))
        elif truth["node"] == "worker-c":
            assert shown == truth["shares"]
        else:
            assert 1 + -(-(shown - 2) * 9999 // 262142) == truth["weight"]
        compared += 1
    assert compared == 40 + 36 + 28
    assert missing == [("debug-shell", "pause")]


def test_recorded_metrics():
    texts = {node: golden(node, "/metrics") for node in NODES}
    assert [metrics.cgroup_version(texts[node]) for node in NODES] == ["v2", "v2", "v1"]
    assert [metrics.stats_from_spec(texts[node]) for node in NODES] == [False, False, False]
    assert [metrics.pod_level(texts[node]) for node in NODES] == [True, False, False]
    assert [metrics.node_named(texts[node]) for node in NODES] == list(NODES)


@pytest.mark.parametrize(
    ("value", "number"),
    [("2", 2), ("2.0", 2), ("1e3", 1000), ("2.62144e+05", 262144), ("0", 0), ("7 1795222637774", 7)],
)
def test_numbers(value, number):
    assert metrics.shares(row(value=value).encode()) == {"/kubepods.slice": number}


def test_labels():
    text = (
        row(r"/a\"b\\c\nd")
        + 'container_spec_cpu_shares { pod = "p" , id = "/spaced" , } 3\n'
        + row("/tricky", "4", name='x,id=\\"/wrong\\"} 9', image="a{b},c")
        + row("not-a-path", "5")
        + "container_spec_cpu_shares 6\n"
        + row("/crlf", "7").replace("\n", "\r\n")
        + row("/crlf", "7.0")
        + "container_spec_cpu_shares_total 8\n\n"
    )
    assert metrics.shares(text.encode()) == {'/a"b\\c\nd': 2, "/spaced": 3, "/tricky": 4, "/crlf": 7}


def test_pods_named():
    text = row("/a", namespace="shop", pod="cart") + row("/b", namespace="", pod="") + row("/c", pod="alone")
    assert metrics.pods_named(text.encode()) == {("shop", "cart")}


HEALTHY = row("/a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the metrics are empty; ask again"),
        (" \n\n", "the metrics are empty; ask again"),
        (b"\xff\xfe\n", "the metrics are not UTF-8 (byte 0); ask again"),
        ("<html>\n", "the answer is no Prometheus text but '<html>\\n'; ask again"),
        ("404 page not found\n", "the answer is no Prometheus text but '404 page not found\\n'; ask again"),
        ("Internal error\n", "the answer is no Prometheus text but 'Internal error\\n'; ask again"),
        ("# HELP a b\n# a comment\n", "the answer is no Prometheus text but '# HELP a b\\n# a comment\\n'; ask again"),
        (HEALTHY + 'up{a="b"} 34', "the metrics break off after 'up{a=\"b\"} 34'; ask again"),
        (HEALTHY + 'up{a="b"}', "the metrics break off after 'up{a=\"b\"}'; ask again"),
        (HEALTHY + 'up{a="b"}\n', "the metrics break off after 'up{a=\"b\"}'; ask again"),
        (HEALTHY + 'up{a="b', "the metrics break off after 'up{a=\"b'; ask again"),
        (HEALTHY + "up\n", "the metrics break off after 'up'; ask again"),
        (HEALTHY + "# HELP up Whether", "the metrics break off after '# HELP up Whether'; ask again"),
        (HEALTHY + "# TYPE up gauge\n", "the metrics break off after '# TYPE up gauge'; ask again"),
        (
            HEALTHY + 'container_spec_cpu_shares{id="/b"\n' + HEALTHY,
            "line 2 of the metrics is no row of container_spec_cpu_shares: 'container_spec_cpu_shares{id=\"/b\"'; ask again",
        ),
        (
            HEALTHY + row("/b", "1_0") + HEALTHY,
            "line 2 of the metrics is no row of container_spec_cpu_shares: "
            "'container_spec_cpu_shares{id=\"/b\"} 1_0'; ask again",
        ),
        (
            row("/b", "2.5"),
            "container_spec_cpu_shares of '/b' is 2.5, which is no number of shares; ask again",
        ),
        (row("/b", "-2"), "container_spec_cpu_shares of '/b' is -2, which is no number of shares; ask again"),
        (row("/b", "NaN"), "container_spec_cpu_shares of '/b' is nan, which is no number of shares; ask again"),
        (row("/b", "+Inf"), "container_spec_cpu_shares of '/b' is inf, which is no number of shares; ask again"),
        (row("/b", "1e999"), "container_spec_cpu_shares of '/b' is inf, which is no number of shares; ask again"),
        (row("/b", "3") + row("/b", "4"), "container_spec_cpu_shares of '/b' is both 3 and 4; ask again"),
        (
            row("/b" * 90, "x") * 2,
            "the answer is no Prometheus text but "
            "'container_spec_cpu_shares{id=\"/b/b/b/b/b/b/b/b/b/b/b/b/b/b/b'; ask again",
        ),
    ],
)
def test_damaged_metrics(text, message):
    with pytest.raises(InputError) as caught:
        metrics.shares(text if isinstance(text, bytes) else text.encode())
    assert str(caught.value) == message


def test_every_cut_of_a_text_is_noticed():
    text = ("# HELP a b\n# TYPE a gauge\na 1\n# TYPE container_spec_cpu_shares gauge\n" + row("/a", "34")).encode()
    whole = text.index(b"# TYPE container")
    for end in range(len(text)):
        if end == whole:  # A family may be missing without a trace.
            continue
        with pytest.raises(InputError):
            metrics.shares(text[:end])


def test_too_many_rows():
    with pytest.raises(InputError, match=r"^the metrics have more than 100000 rows of container_spec_cpu_shares; "):
        metrics.shares(row("/a").encode() * 100_001)


_NO_METRICS = "the answer is no Prometheus text but"


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("many open braces", _NO_METRICS),
        ("a label without an end", _NO_METRICS),
        ("labels without an end", _NO_METRICS),
        ("blanks within a value", "line 2 of the metrics is no row of container_spec_cpu_shares: "),
        ("comments alone", _NO_METRICS),
    ],
)
def test_hostile_metrics_are_refused(name, refusal):
    with pytest.raises(InputError) as raised:
        metrics.shares(HOSTILE_METRICS[name])
    assert str(raised.value).startswith(refusal)


def test_metrics_of_other_names_hold_no_shares():
    assert metrics.shares(HOSTILE_METRICS["names that begin alike"]) == {}


_pieces = st.sampled_from(
    [
        *("container_spec_cpu_shares", "kubelet_cgroup_version", "kubelet_metrics_provider", "kubelet_node_name"),
        *(
            "{",
            "}",
            ",",
            '"',
            "\\",
            "=",
            " ",
            "\n",
            "#",
            "id",
            "/a",
            "2",
            "1e3",
            "NaN",
            "-",
            "+Inf",
            "\r",
            "\t",
            "\x85",
        ),
        *(row("/a"), "kubelet_cgroup_version 2\n", "# TYPE "),
    ]
)
_texts = st.one_of(
    st.binary(max_size=200), st.lists(_pieces, max_size=40).map(lambda parts: "".join(parts).encode()), st.text()
)


@given(_texts)
@example("a 1\n\x85\n")
@example("\ufeffa 1\n")
def test_hostile_metrics_are_refused_or_read(text):
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    functions = (
        metrics.shares,
        metrics.pods_named,
        metrics.node_named,
        metrics.cgroup_version,
        metrics.stats_from_spec,
        metrics.pod_level,
    )
    for function in functions:
        with suppress(InputError):
            function(data)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("kubelet_cgroup_version 1\n", "v1"),
        ("kubelet_cgroup_version 2e0\n", "v2"),
        ("kubelet_cgroup_versions 2\n", None),
    ],
)
def test_cgroup_version(text, version):
    assert metrics.cgroup_version(text.encode()) == version


@pytest.mark.parametrize("value", ["3", "0", "1.5", "NaN", "2\nkubelet_cgroup_version 1"])
def test_impossible_cgroup_version(value):
    with pytest.raises(InputError, match=r"^kubelet_cgroup_version is .* and not 1 or 2; ask again$"):
        metrics.cgroup_version(f"kubelet_cgroup_version {value}\n".encode())


@pytest.mark.parametrize(
    ("text", "from_spec"),
    [
        ('kubelet_metrics_provider{provider="cri"} 1\n', True),
        ('kubelet_metrics_provider{provider="cri"} 0\n', False),
        ('kubelet_metrics_provider{provider="cadvisor"} 1\n', False),
        ("up 1\n", False),
        # Kubelets that do not name the provider.
        ('kubernetes_feature_enabled{name="PodAndContainerStatsFromCRI",stage="ALPHA"} 1\n', True),
        ('kubernetes_feature_enabled{name="PodAndContainerStatsFromCRI",stage="ALPHA"} 0\n', False),
        (
            'kubernetes_feature_enabled{name="PodAndContainerStatsFromCRI"} 1\nkubelet_metrics_provider{provider="cadvisor"} 1\n',
            False,
        ),
    ],
)
def test_stats_from_spec(text, from_spec):
    assert metrics.stats_from_spec(text.encode()) is from_spec


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ('kubernetes_feature_enabled{name="PodLevelResources",stage="ALPHA"} 0\n', False),
        ('kubernetes_feature_enabled{name="PodLevelResources",stage=""} 1\n', True),
        ('kubernetes_feature_enabled{name="PodLevelResourceManagers",stage="ALPHA"} 1\n', None),
        ("up 1\n", None),
    ],
)
def test_the_gate_of_pod_level_resources(text, on):
    assert metrics.pod_level(text.encode()) is on


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/kubepods.slice/x", None),
        (
            "/kubelet.slice/kubelet-kubepods.slice/x",
            "/metrics/cadvisor could not be used: its pods are under '/kubelet.slice/kubelet-kubepods.slice/x': a kubelet with a "
            "--cgroup-root of its own is not modelled",
        ),
    ],
)
def test_a_kubelet_with_a_root_of_its_own_is_said_to_be_left_out(path: str, problem: str | None) -> None:
    bodies = {
        "/metrics": b'kubelet_cgroup_version 2\nkubelet_node_name{node="n1"} 1\n',
        "/metrics/cadvisor": f'container_spec_cpu_shares{{id="{path}"}} 1026\n'.encode(),
        "/configz": b'{"kubeletconfig": {}}',
    }
    found = kubelet_answers.understand("n1", bodies, {}, set())
    assert (found.problems, bool(found.shares)) == ((problem,) if problem else (), problem is None)
    # A service beside the tree may be called after it.
    bodies["/metrics/cadvisor"] += (
        b'container_spec_cpu_shares{id="/kubepods"} 9\ncontainer_spec_cpu_shares{id="/a/kubepods"} 9\n'
    )
    assert kubelet_answers.understand("n1", bodies, {}, set()).problems == ()


@pytest.mark.parametrize(("name", "kept"), [("n1", True), ("", False)])
def test_rows_of_another_node_cost_what_is_not_known_to_be_of_this_one(name: str, kept: bool) -> None:
    said = f'kubelet_node_name{{node="{name}"}} 1\n' if name else ""
    bodies = {
        "/metrics": f"kubelet_cgroup_version 2\n{said}".encode(),
        "/metrics/cadvisor": b'container_spec_cpu_shares{id="/kubepods.slice/x",namespace="z",pod="z"} 1026\n',
        "/configz": b'{"kubeletconfig": {}}',
    }
    found = kubelet_answers.understand("n1", bodies, {}, {("default", "p")})
    assert (found.cgroup_version == "v2") is kept
    # Each answer is a file of its own: one may have been mistaken for another.
    assert (found.config is not None, found.shares) == (kept, {})
    stranger = "/metrics/cadvisor is of another node (it names 'z/z' and none of the pods that run here)"
    assert found.problems == (stranger if kept else f"{stranger}: all answers were ignored",)
