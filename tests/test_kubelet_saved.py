"""Saved answers of kubelets: which files they are in, and what is said of those that are missing or wrong."""

import os

import pytest

from kubectl_cgaudit.collect import configz, kubelet, kubelet_files, metrics
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import InputError
from tests.kubelet_support import (
    ENDINGS,
    NODES,
    golden,
    golden_pods,
    no_answers,
    recorded_answers,
)
from tests.support import GOLDEN
from tests.vcr_support import RECORDED, kubeconfig, replay

NAMES = "(their names are NODE.configz.txt, NODE.metrics.txt, NODE.metrics-cadvisor.txt)"
pytestmark = pytest.mark.usefixtures("home")


def test_no_folder(tmp_path):
    with pytest.raises(InputError) as caught:
        kubelet_files.from_files(str(tmp_path / "none"), NODES, {})
    assert str(caught.value) == (
        f"{tmp_path / 'none'} cannot be read: No such file or directory; name a folder of saved kubelet answers"
    )
    (tmp_path / "file").touch()
    for wrong in (str(tmp_path / "file"), "nul\0byte"):
        with pytest.raises(InputError, match=r" cannot be read: .*; name a folder of saved kubelet answers$"):
            kubelet_files.from_files(wrong, NODES, {})


@pytest.mark.parametrize("node", ["../golden/worker-a", "..", "", "/etc/passwd", "a/b", "a\0b", "a..b", "a\nb"])
def test_names_that_are_no_names(tmp_path, node):
    folder = tmp_path / "answers"
    folder.mkdir()
    (tmp_path / "golden").symlink_to(GOLDEN)
    assert kubelet_files.from_files(str(folder), [node], {}) == {
        node: no_answers(node, f"no saved answers in {folder} {NAMES}")
    }


def test_saved_answers_that_are_incomplete(tmp_path):
    def save(node: str, endpoint: str, body: bytes) -> None:
        (tmp_path / f"{node}.{ENDINGS[endpoint]}").write_bytes(body)

    save("worker-a", "/metrics", golden("worker-a", "/metrics"))
    save("worker-a", "/metrics/cadvisor", golden("worker-a", "/metrics/cadvisor"))
    save("worker-b", "/configz", golden("worker-b", "/configz")[:-9])
    save("worker-b", "/metrics", golden("worker-b", "/metrics")[:-3])
    save("worker-b", "/metrics/cadvisor", golden("worker-b", "/metrics"))
    save("worker-c", "/configz", golden("worker-c", "/configz"))
    os.mkfifo(tmp_path / "worker-c.metrics.txt")
    (tmp_path / "worker-c.metrics-cadvisor.txt").symlink_to(tmp_path / "gone")
    answers = kubelet_files.from_files(str(tmp_path), NODES, golden_pods())
    a, b, c = (answers[node] for node in NODES)
    assert a.config is None
    assert len(a.shares) == 44
    assert a.problems == ("/configz was not saved (there is no worker-a.configz.txt)",)
    assert (b.config, b.cgroup_version, b.shares) == (None, None, {})
    start = golden("worker-b", "/configz")[:60].decode()
    assert b.problems[0] == f"/configz could not be used: the answer is not JSON but {start!r}; ask again"
    assert b.problems[1].startswith("/metrics could not be used: the metrics break off after '")
    assert b.problems[2] == (
        "/metrics/cadvisor could not be used: there is no container_spec_cpu_shares in it; "
        "see whether the kubelet leaves cAdvisor out"
    )
    assert c.config == configz.config(golden("worker-c", "/configz"))
    assert c.problems == (
        "/metrics could not be read (worker-c.metrics.txt: it is no file)",
        "/metrics/cadvisor could not be read (worker-c.metrics-cadvisor.txt: it is no file)",
    )


@pytest.mark.parametrize(
    ("endpoint", "last"),
    [("/metrics", "kubernetes_feature_enabled"), ("/metrics/cadvisor", "container_spec_cpu_shares")],
)
def test_saved_metrics_that_end_too_early_prove_nothing(tmp_path, endpoint, last):
    """A cut between two lines shows in what does not follow: metrics are in the order of their names."""
    whole = golden("worker-a", endpoint).splitlines(keepends=True)
    rows = [place for place, line in enumerate(whole, start=1) if line.startswith(last.encode())]
    name = f"worker-a.{ENDINGS[endpoint]}"

    def cut(after: int) -> str:
        (tmp_path / name).write_bytes(b"".join(whole[:after]))
        answers = kubelet_files.from_files(str(tmp_path), ["worker-a"], {})["worker-a"]
        (of_it,) = [each for each in answers.problems if each.startswith(f"{endpoint} ")] or [""]
        read = answers.cgroup_version if endpoint == "/metrics" else answers.shares
        assert bool(of_it) is not bool(read)
        return of_it

    for after in (rows[0], rows[-1]):
        assert cut(after) == f"{endpoint} could not be read ({name} ends with {last}, so it may be cut: save all of it)"
    # Behind it stand HELP and TYPE of the next.
    assert cut(rows[-1] + 3) == cut(len(whole)) == ""
    assert cut(whole.index(next(line for line in whole if line[:1] != b"#")) + 1) != ""


def test_a_cut_does_not_make_shares_of_the_spec_measured_ones(tmp_path):
    text = golden("worker-a", "/metrics").replace(b'provider="cadvisor"', b'provider="cri"')
    assert b'kubelet_metrics_provider{provider="cri"} 1' in text
    for endpoint in ENDINGS:
        (tmp_path / f"worker-a.{ENDINGS[endpoint]}").write_bytes(golden("worker-a", endpoint))
    for body in (text, text[: text.index(b"# HELP kubelet_metrics_provider")]):
        (tmp_path / "worker-a.metrics.txt").write_bytes(body)
        answers = kubelet_files.from_files(str(tmp_path), ["worker-a"], golden_pods())["worker-a"]
        assert answers.problems != ()
        assert answers.stats_from_spec is not False


def test_saved_answers_that_are_too_large(tmp_path):
    with (tmp_path / "n1.metrics.txt").open("wb") as file:
        file.truncate((64 << 20) + 1)
    assert kubelet_files.from_files(str(tmp_path), ["n1"], {})["n1"].problems == (
        "/configz was not saved (there is no n1.configz.txt)",
        "/metrics could not be read (n1.metrics.txt: it is larger than 64 MiB)",
        "/metrics/cadvisor was not saved (there is no n1.metrics-cadvisor.txt)",
    )


def test_another_nodes_saved_answers(tmp_path):
    for ending in ENDINGS.values():
        (tmp_path / f"worker-a.{ending}").write_bytes((GOLDEN / f"worker-b.{ending}").read_bytes())
    (tmp_path / "worker-c.metrics-cadvisor.txt").write_bytes(golden("worker-b", "/metrics/cadvisor"))
    answers = kubelet_files.from_files(str(tmp_path), NODES, golden_pods())
    assert answers["worker-a"] == no_answers(
        "worker-a", "/metrics is of another node ('worker-b'): all answers were ignored"
    )
    first = "/".join(min(metrics.pods_named(golden("worker-b", "/metrics/cadvisor"))))
    assert answers["worker-c"] == no_answers(
        "worker-c",
        f"/metrics/cadvisor is of another node (it names '{first}' and none of the pods that run here): "
        "all answers were ignored",
    )
    unknown = kubelet_files.from_files(str(tmp_path), ["worker-c"], {})["worker-c"]
    assert len(unknown.shares) == 41


def test_recorded_kubelets_through_the_proxy(tmp_path, monkeypatch):
    # While one thread makes a connection, vcrpy takes its patches away from all of them.
    monkeypatch.setattr(kubelet, "_AT_ONCE", 1)
    lines: list[str] = []
    connection = Connection(kubeconfig=kubeconfig(tmp_path / "config"))
    with replay("kubelets") as played, Api(connection) as api:
        answers = kubelet.from_proxy(
            api, NODES, golden_pods(), lambda what, done, total: lines.append(f"{what} {done} of {total}")
        )
        assert played.play_count == 9
        assert played.all_played
        asked = {request.uri.removeprefix(RECORDED) for request in played.requests}
    assert asked == {f"/api/v1/nodes/{node}/proxy{endpoint}" for node in NODES for endpoint in ENDINGS}
    assert answers == {node: recorded_answers(node) for node in NODES}
    assert list(answers) == list(NODES)
    assert lines == ["kubelets 0 of 3", "kubelets 1 of 3", "kubelets 2 of 3", "kubelets 3 of 3"]
