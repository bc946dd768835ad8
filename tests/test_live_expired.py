"""Lists of several pages: what is read where they expire, start again, or never end."""

import json
from itertools import count

import pytest

from kubectl_cgaudit.collect import live, pages
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.http import RequestError
from kubectl_cgaudit.collect.model import Gap
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.collect.transport import Api
from tests.live_support import NO_PODS, everything, local, only, read, told
from tests.vcr_support import (
    RECORDED,
    a_list,
    a_node,
    a_pod,
    a_status,
    interactions,
    replay,
    serve,
    write_cassette,
)

pytestmark = pytest.mark.usefixtures("home")


EXPIRED = "the list expired twice while it was read (410) and was continued from a newer state, so it mixes two moments"


def test_pages(recorded):
    lines = []
    assembly = Assembly(everything, "")
    with replay("pages") as played, Api(recorded) as api:
        live.read_nodes(api, assembly, told(lines), page_size=2)
        live.read_pods(api, None, assembly, told(lines), page_size=7)
        assert played.all_played
    cluster = assembly.cluster(api.source)
    assert lines == [
        *("nodes 2 of 3", "nodes 3"),
        *("pods 7 of 29", "pods 14 of 29", "pods 21 of 29", "pods 28 of 29", "pods 29"),
    ]
    assert (len(cluster.nodes), len(cluster.pods)) == (3, 29)
    assert (cluster.reading.gaps, cluster.reading.duplicates) == ((), 0)


def test_expired_list_is_continued(recorded, tmp_path):
    # To get a 410 the recording asked with an older token than the one page 1 had just given out; here the
    # second request is the one that follows from page 1. The answers are as recorded.
    chosen = interactions("expired")
    handed_out = json.loads(chosen[0]["response"]["body"]["string"])["metadata"]["continue"]
    chosen[1]["request"]["uri"] = f"{RECORDED}/api/v1/pods?limit=7&continue={handed_out}"
    assembly = Assembly(everything, "")
    # It expires twice: the first time the list is read again from the start.
    cassette = write_cassette(tmp_path / "expired.yaml", [*chosen[:2], *chosen])
    with replay(cassette) as played, Api(recorded) as api:
        live.read_pods(api, None, assembly, silent, page_size=7)
        assert played.all_played
    cluster = assembly.cluster(api.source)
    assert len(cluster.pods) == 29
    assert cluster.reading.duplicates == 0
    assert cluster.reading.gaps == (Gap("pods", EXPIRED, "Run the audit again"),)


def test_expired_list_without_a_token_starts_again(tmp_path):
    asked = []

    def pods(path):
        asked.append(path.partition("?")[2])
        if len(asked) == 2:
            return a_status(410, "too old")
        if "continue" in path:
            return a_list("Pod", a_pod("two"))
        return a_list("Pod", a_pod("one"), **{"continue": f"t{len(asked)}="})

    with serve(only(pods=pods)) as server:
        cluster = read(local(tmp_path, server))
    assert asked == ["limit=500", "limit=500&continue=t1%3D", "limit=500", "limit=500&continue=t3%3D"]
    assert [pod.name for pod in cluster.pods] == ["one", "two"]
    assert cluster.reading.duplicates == 0
    assert cluster.reading.gaps == ()


def test_a_list_that_starts_again_forgets_what_it_had(tmp_path):
    asked = []

    def pods(path):
        asked.append(path)
        if "continue" in path:
            return a_status(410, "too old") if len(asked) == 2 else a_list("Pod", a_pod("two"))
        return a_list("Pod", a_pod("gone" if len(asked) == 1 else "one"), **{"continue": "t"})

    with serve(only(pods=pods)) as server:
        cluster = read(local(tmp_path, server))
    assert [pod.name for pod in cluster.pods] == ["one", "two"]
    assert cluster.reading.gaps == ()


def test_list_that_always_expires_is_given_up(tmp_path):
    def nodes(path):
        return a_status(410, "too old") if "continue" in path else a_list("Node", a_node(), **{"continue": "t"})

    with serve(only(nodes=nodes)) as server:
        cluster = read(local(tmp_path, server))
    assert [request.path.partition("?")[0] for request in server.requests].count("/api/v1/nodes") == 8
    assert cluster.reading.gaps == (
        Gap("nodes", "the list broke off after 1 node (410: too old)", "Run the audit again"),
        NO_PODS,
    )


def test_list_that_repeats_its_token_ends(tmp_path):
    with serve(only(pods=a_list("Pod", a_pod("one"), **{"continue": "same"}))) as server:
        cluster = read(local(tmp_path, server))
    assert [pod.name for pod in cluster.pods] == ["one"]
    assert [request.path for request in server.requests].count("/api/v1/pods?limit=500&continue=same") == 1
    assert cluster.reading.gaps == (
        Gap("pods", "the list broke off after 2 pods (the server repeats its continue token)", "Run the audit again"),
    )


FIRST = {"resourceVersion": "5", "continue": "a"}
LATER = {"resourceVersion": "900"}
MOMENTS = "its pages are of two moments (resourceVersion 5, then 900)"


@pytest.mark.parametrize(
    ("versions", "gaps"),
    [
        (("5", "900", "900"), (Gap("pods", MOMENTS, "Run the audit again"),)),
        (("5", "5", "900"), (Gap("pods", MOMENTS, "Run the audit again"),)),
        (("", "5", "900"), (Gap("pods", MOMENTS, "Run the audit again"),)),
        (("5", "", "5"), ()),
        (("", "", ""), ()),
    ],
)
def test_pages_of_two_moments_are_told(tmp_path, versions, gaps):
    replies = [
        a_list("Pod", a_pod(f"p{number}"), **({"resourceVersion": version} if version else {}), **more)
        for number, (version, more) in enumerate(zip(versions, ({"continue": "a"}, {"continue": "b"}, {}), strict=True))
    ]
    with serve(only(pods=lambda path: replies.pop(0))) as server:
        cluster = read(local(tmp_path, server))
    assert [pod.name for pod in cluster.pods] == ["p0", "p1", "p2"]
    assert cluster.reading.gaps == gaps


def test_an_optional_list_of_two_moments_is_a_note(tmp_path):
    def jobs(path):
        return a_list("Job", a_pod("two" if "continue" in path else "one"), **(LATER if "continue" in path else FIRST))

    with serve(only(jobs=jobs), tls=tmp_path) as server:
        cluster = read(local(tmp_path, server))
    assert cluster.jobs == {("shop", "one"): None, ("shop", "two"): None}
    assert cluster.reading.gaps == (NO_PODS,)
    assert cluster.reading.notes == (f"Jobs may not be all there ({MOMENTS}): CronJobs are named from the Job's name",)


def test_namespaces_of_two_moments_are_a_gap(tmp_path):
    """One that is on neither page has pods that nobody read."""

    def namespaces(path):
        name, metadata = ("shop", LATER) if "continue" in path else ("data", FIRST)
        return a_list("Namespace", {"metadata": {"name": name}}, **metadata)

    def pods(path):
        return a_list("Pod") if "/namespaces/" in path else a_status(403, "forbidden")

    with serve(only(namespaces=namespaces, pods=pods)) as server:
        cluster = read(local(tmp_path, server))
    assert [request.path for request in server.requests if "/namespaces/" in request.path] == [
        f"/api/v1/namespaces/{name}/pods?limit=500" for name in ("data", "shop")
    ]
    assert cluster.reading.gaps == (Gap("namespaces", MOMENTS, "Run the audit again"),)


def test_a_list_that_starts_again_shows_one_moment(tmp_path):
    replies = [
        a_list("Pod", a_pod("gone"), resourceVersion="5", **{"continue": "a"}),
        a_list("Pod", a_pod("gone-too"), resourceVersion="6", **{"continue": "b"}),
        a_status(410, "too old"),
        a_list("Pod", a_pod("one"), resourceVersion="7", **{"continue": "c"}),
        a_list("Pod", a_pod("two"), resourceVersion="7"),
    ]
    with serve(only(pods=lambda path: replies.pop(0))) as server:
        cluster = read(local(tmp_path, server))
    assert [pod.name for pod in cluster.pods] == ["one", "two"]
    assert cluster.reading.gaps == ()


def asking(cpu):
    one = a_pod("one")
    one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return one


def test_a_pod_that_came_twice_and_not_alike_is_a_gap(tmp_path):
    replies = [a_list("Pod", asking("1"), **{"continue": "a"}), a_list("Pod", asking("2"))]
    with serve(only(pods=lambda path: replies.pop(0))) as server:
        cluster = read(local(tmp_path, server))
    (pod,) = cluster.pods
    assert (pod.containers[0].request_milli, cluster.reading.duplicates) == (1000, 1)
    why = "read more than once, and not alike: the first was taken"
    title = "pod shop/one"
    assert cluster.reading.gaps == (Gap(title, why, "Run the audit again", "object that is not alike", (title,)),)


def test_what_was_not_alike_is_forgotten_with_the_list(tmp_path):
    replies = [
        a_list("Pod", asking("1"), **{"continue": "a"}),
        a_list("Pod", asking("2"), **{"continue": "b"}),
        a_status(410, "too old"),
        a_list("Pod", asking("2")),
    ]
    with serve(only(pods=lambda path: replies.pop(0))) as server:
        cluster = read(local(tmp_path, server))
    assert len(cluster.pods) == 1
    assert cluster.reading.gaps == ()


def endless(*items, kind="Pod", **metadata):
    """A list whose pages always lead to another."""
    numbers = count()
    return lambda path: a_list(kind, *items, **metadata, **{"continue": f"t{next(numbers)}"})


def test_list_of_empty_pages_ends(tmp_path):
    with serve(only(pods=endless(), jobs=endless(kind="Job"))) as server, pytest.raises(RequestError) as caught:
        read(local(tmp_path, server))
    assert str(caught.value) == (f"{server.host}: Pods cannot be listed, the server's list does not end; try again")
    # The page after the twentieth is asked for before that one is looked at.
    asked = [request.path for request in server.requests if request.path.startswith("/api/v1/pods")]
    assert 20 <= len(asked) <= 22


def test_optional_list_of_empty_pages_is_a_note(tmp_path):
    with serve(only(pods=a_list("Pod", a_pod("one")), jobs=endless(kind="Job")), tls=tmp_path) as server:
        cluster = read(local(tmp_path, server))
    assert cluster.reading.gaps == ()
    assert cluster.reading.notes == (
        "Jobs could not be listed (the server's list does not end): CronJobs are named from the Job's name",
    )


def test_a_few_empty_pages_are_no_end(tmp_path):
    replies = [a_list("Pod", **{"continue": f"t{number}"}) for number in range(19)]
    replies += [a_list("Pod", a_pod("one"), **{"continue": "more"})]
    replies += [a_list("Pod", **{"continue": f"u{number}"}) for number in range(19)]
    replies.append(a_list("Pod", a_pod("two")))
    with serve(only(pods=lambda path: replies.pop(0))) as server:
        cluster = read(local(tmp_path, server))
    assert ([pod.name for pod in cluster.pods], cluster.reading.gaps) == (["one", "two"], ())


def test_list_with_far_more_than_was_announced_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "_AND", 5)
    with serve(only(pods=endless(a_pod("one"), a_pod("two"), remainingItemCount=3))) as server:
        cluster = read(local(tmp_path, server))
    # Five were announced: no list has twice as many and five more.
    why = "the list broke off after 16 pods (the server's list does not end)"
    assert cluster.reading.gaps == (Gap("pods", why, "Run the audit again"),)


def test_pods_that_break_off_are_kept(tmp_path):
    def pods(path):
        return a_status(500, "away") if "continue" in path else a_list("Pod", a_pod("one"), **{"continue": "t"})

    with serve(only(pods=pods)) as server:
        cluster = read(local(tmp_path, server))
    assert [pod.name for pod in cluster.pods] == ["one"]
    assert cluster.reading.gaps == (Gap("pods", "the list broke off after 1 pod (500: away)", "Run the audit again"),)


def test_a_wrong_page_is_asked_for_again(tmp_path, pauses):
    replies = [(200, b"<html>", {}), a_list("Pod"), a_list("Node", a_node())]
    with serve(only(nodes=lambda path: replies.pop(0))) as server:
        assert len(read(local(tmp_path, server)).nodes) == 1
    assert pauses == [0.5, 1.0]
