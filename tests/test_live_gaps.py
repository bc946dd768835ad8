"""What is said of lists that break off, start again, or may be read in part."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kubectl_cgaudit.collect import kubelet, live
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.http import Answer, RequestError, UnreachableError
from kubectl_cgaudit.collect.model import Gap
from kubectl_cgaudit.collect.pages import Page, Resource
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.errors import ClusterError
from tests.support import cluster, container, node, pod

pytestmark = pytest.mark.usefixtures("home")


def status(answer: Answer) -> int:
    return answer.status


@pytest.mark.parametrize(
    ("failure", "hint"),
    [
        (RequestError("m", "its TLS certificate is not trusted: expired"), True),
        (RequestError("m", "no answer within 10 s"), False),
    ],
)
def test_only_distrust_names_the_flag_that_ends_it(failure: RequestError, hint: bool) -> None:
    said = kubelet._unread(failure)
    assert said.startswith(f"could not be read ({failure.why})")
    assert ("--kubelet-insecure-tls" in said) is hint


API: Any = SimpleNamespace(host="h", namespace="")


MakesPage = Callable[[], Page]


def page(*objects: dict[str, Any], left: int | None = 0, **more: Any) -> MakesPage:
    """A page that is made when it is asked for: its objects can be taken once."""
    raw = [msgspec.Raw(msgspec.json.encode(each)) for each in objects]
    fields = {"again": False, "mixed": "", "withheld": 0, **more}
    return lambda: Page(iter(raw), len(raw), left, **fields)


Pages = dict[str, list[MakesPage | RequestError]]


def paged(says: Pages, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lists of a server by the last word of their path; returns the paths that are asked for."""
    asked: list[str] = []

    def pages(api: Any, resource: Resource, size: int) -> Iterator[Page]:
        asked.append(resource.path)
        for each in says.get(resource.path, says.get(resource.path.rpartition("/")[2], [])):
            if isinstance(each, RequestError):
                raise each
            yield each()

    monkeypatch.setattr(live, "pages", pages)
    return asked


def assembly() -> Assembly:
    return Assembly(lambda namespace, labels: True, "")


def failing(status: int = 0, why: str = "why") -> RequestError:
    return RequestError("message", why, status)


LATER = "the list expired twice while it was read (410) and was continued from a newer state, so it mixes two moments"


LOST = "the server announced 2 more than it sent: something between filters or loses them"


AGAIN, PAST = "Run the audit again", "Run the audit again, past any proxy"


@pytest.mark.parametrize(
    ("nodes", "gaps"),
    [
        ([page(node())], []),
        ([page(node()), failing()], [Gap("nodes", "the list broke off after 1 node (why)", AGAIN)]),
        ([page(node(), withheld=2)], [Gap("nodes", LOST, PAST)]),
        ([page(node("a"), withheld=2), page(node("b"))], [Gap("nodes", LOST, PAST)]),
        ([page(node("a"), withheld=2), page(node("b"), again=True)], []),
        ([page(node("a"), mixed=LATER), page(node("b"))], [Gap("nodes", LATER, AGAIN)]),
        ([page(node("a")), page(node("b"), mixed=LATER)], [Gap("nodes", LATER, AGAIN)]),
        ([failing(403)], "the nodes may not be listed (why)"),
        ([page(node()), failing(403)], "the nodes may not be listed (why)"),
        ([failing(500)], "message"),
        ([page()], "h has no nodes"),
    ],
)
def test_what_is_said_of_the_nodes(
    nodes: list[MakesPage | RequestError], gaps: list[Gap] | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paged({"nodes": nodes}, monkeypatch)
    whole = assembly()
    if isinstance(gaps, str):
        with pytest.raises(ClusterError, match=f"^{gaps.replace('(', '[(]').replace(')', '[)]')}"):
            live.read_nodes(API, whole, silent)
    else:
        live.read_nodes(API, whole, silent)
        assert whole.gaps == gaps


def test_a_list_that_starts_again_is_counted_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, int, int | None]] = []
    paged(
        {"nodes": [page(node("a"), node("b"), left=3), page(node("c"), again=True, left=1), page(node("d"))]},
        monkeypatch,
    )
    whole = assembly()
    live.read_nodes(API, whole, lambda *words: said.append(words))
    assert said == [("nodes", 2, 5), ("nodes", 1, 2), ("nodes", 2, None)]
    assert [each.name for each in whole.cluster("x").nodes] == ["c", "d"]


def names_of(
    says: list[MakesPage | RequestError], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str] | None, list[str]]:
    paged({"namespaces": says}, monkeypatch)
    whole = assembly()
    return live._namespaces(API, whole, silent, 500), whole.notes


def test_which_namespaces_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, none = ({"metadata": {"name": name}} for name in ("a", "b", ""))
    assert names_of([page(b, none), page(a)], monkeypatch) == (["a", "b"], [])
    assert names_of([page(b, withheld=2), page(a, again=True)], monkeypatch) == (["a"], [])
    assert names_of([failing(403)], monkeypatch) == (None, [])
    note = "Namespaces could not be listed ({}): only one was tried"
    assert names_of([page(a), failing(500)], monkeypatch) == (None, [note.format("why")])
    assert names_of([page(a, withheld=2)], monkeypatch) == (
        None,
        [note.format("the server announced 2 more than it sent")],
    )
    assert names_of([page({"metadata": 1})], monkeypatch) == (None, [note.format("one of them is damaged")])


CLUSTER_WIDE = "pods may not be listed cluster-wide (403)"


UNTIL = "Ask for list on pods cluster-wide; until then effective shares are upper bounds, because siblings are unseen"


def pods_read(says: Pages, monkeypatch: pytest.MonkeyPatch, namespace: str | None = None, own: str = "") -> Any:
    asked = paged(says, monkeypatch)
    whole = assembly()
    live.read_pods(SimpleNamespace(host="h", namespace=own), namespace, whole, silent)  # type: ignore[arg-type]
    return asked, whole.gaps, whole.notes


def test_what_is_said_of_pods_that_may_be_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(name: str) -> str:
        return f"/api/v1/namespaces/{name}/pods"

    refused: Pages = {"/api/v1/pods": [failing(403)]}
    both: Pages = {"namespaces": [page({"metadata": {"name": "a"}}, {"metadata": {"name": "b"}})]}
    _, gaps, notes = pods_read({**refused, **both, of("a"): [page()], of("b"): [page()]}, monkeypatch)
    assert (gaps, len(notes)) == ([], 1)
    both = {"namespaces": [page({"metadata": {"name": "a"}}, {"metadata": {"name": "b"}})]}
    _, gaps, notes = pods_read({**refused, **both, of("a"): [page()], of("b"): [failing(403)]}, monkeypatch)
    assert (gaps, notes) == (
        [
            Gap(
                "pods of 1 namespace: b",
                f"{CLUSTER_WIDE}, nor in these",
                UNTIL,
                "namespace whose pods were not read",
                ("b",),
            )
        ],
        [],
    )
    # One namespace is known from the flag, and its name is one part of the path.
    asked, gaps, _ = pods_read({**refused, of("a%2Fb"): [page(withheld=2), failing(500)]}, monkeypatch, "a/b")
    assert asked == ["/api/v1/pods", of("a%2Fb")]
    assert gaps == [
        Gap("pods of namespace a/b", "the list broke off after 0 pods (why)", AGAIN),
        Gap("pods of namespace a/b", LOST, PAST),
        Gap("pods of the other namespaces", CLUSTER_WIDE, UNTIL),
    ]
    _, gaps, _ = pods_read({**refused, "namespaces": [failing(403)], of("own"): [failing(403)]}, monkeypatch, own="own")
    where = "pods may not be listed cluster-wide or in namespace own (403)"
    ask = "Ask for list on pods cluster-wide"
    assert gaps == [Gap("pods", where, f"{ask}, or give -n with a namespace whose pods you may list")]
    _, gaps, _ = pods_read({**refused, of("own"): [failing(403)]}, monkeypatch, "own")
    assert gaps == [Gap("pods", where, ask)]
    _, gaps, _ = pods_read({**refused, "namespaces": [page()]}, monkeypatch)
    assert gaps == [Gap("pods", CLUSTER_WIDE, "Ask for list on pods cluster-wide")]


SILENT = RequestError("message", "no answer within 60 s", silent=True)


@pytest.mark.parametrize(
    ("failures", "asked", "again"),
    [
        ([SILENT, SILENT], "abcd", AGAIN),
        ([SILENT, None, UnreachableError("message", "connection refused")], "abcde", AGAIN),
        ([RequestError("message", "401", 401)], "abc", "Log in, and run the audit again"),
        ([failing(500), failing(404), failing(500)], "abcdef", ""),
    ],
)
def test_namespaces_are_not_asked_for_where_others_cost_a_whole_wait(
    failures: list[RequestError | None], asked: str, again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first two may be read; then come the failures."""
    names = "abcdef"
    says: Pages = {"/api/v1/pods": [failing(403)], "namespaces": [page(*({"metadata": {"name": n}} for n in names))]}
    for name, failure in zip(names, [None, None, *failures, None, None], strict=False):
        says[f"/api/v1/namespaces/{name}/pods"] = [failure or page(pod("p", namespace=name))]
    paths, gaps, _ = pods_read(says, monkeypatch)
    assert [path.split("/")[4] for path in paths if path.endswith("/pods") and "namespaces" in path] == [*asked]
    untried = [gap for gap in gaps if gap.why.startswith("not asked for")]
    left = names[len(asked) :]
    last = failures[-1].why if failures[-1] else ""
    assert untried == [
        Gap(
            f"pods of {len(left)} namespace{'s' if len(left) > 1 else ''}: {', '.join(left)}",
            f"not asked for any more, as it went with those before ({last})",
            again,
            "namespace whose pods were not read",
            tuple(left),
        )
        for _ in range(bool(left))
    ]
    assert len(gaps) == len([each for each in failures if each]) + len(untried)


def test_pods_that_break_off_after_some_are_a_gap_and_before_any_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for status in (403, 500):
        _, gaps, _ = pods_read({"pods": [page(pod("p")), failing(status)]}, monkeypatch)
        assert gaps == [Gap("pods", "the list broke off after 1 pod (why)", AGAIN)]
    with pytest.raises(RequestError, match=r"^message$"):
        pods_read({"pods": [failing(500)]}, monkeypatch)


@pytest.mark.parametrize(
    ("says", "note"),
    [
        ([page()], ""),
        ([failing(403)], "Jobs may not be listed (403): CronJobs are named from the Job's name"),
        ([failing(404)], "Jobs are not served (404): CronJobs are named from the Job's name"),
        ([failing(500)], "Jobs could not be listed (why): CronJobs are named from the Job's name"),
        (
            [page(withheld=2)],
            "Jobs could not be listed (the server announced 2 more than it sent): CronJobs are named from the Job's name",
        ),
    ],
)
def test_a_list_that_can_be_done_without_is_there_whole_or_not_at_all(
    says: list[MakesPage | RequestError], note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"metadata": {"name": "j", "namespace": "n"}}
    paged({"jobs": [page(job), *says]}, monkeypatch)
    whole = assembly()
    live.read_optional(API, live.OPTIONAL[2], whole, silent)
    assert whole.notes == ([note] if note else [])
    assert whole.cluster("x").jobs == (None if note else {("n", "j"): None})


@pytest.mark.parametrize(
    ("kubelets", "called", "more"),
    [
        (live.Kubelets(False, False, None), "proxy", {"seconds": kubelet.SECONDS}),
        (live.Kubelets(False, False, 3.0), "proxy", {"seconds": 3.0}),
        (live.Kubelets(True, False, None), "direct", {"insecure": False, "seconds": kubelet.SECONDS}),
        (live.Kubelets(True, True, 3.0), "direct", {"insecure": True, "seconds": 3.0}),
    ],
)
def test_only_linux_nodes_are_asked_each_where_it_listens(
    kubelets: live.Kubelets, called: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    there, nowhere, windows = node("there"), node("nowhere"), node("windows", operatingSystem="windows")
    there["status"]["addresses"] = [{"type": "InternalIP", "address": "10.0.0.7"}]
    there["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10260}}
    found = cluster(there, nowhere, windows, pod("p", container("c"), on="there"))
    calls: list[Any] = []
    for name, function in (("proxy", "from_proxy"), ("direct", "from_kubelets")):
        monkeypatch.setattr(
            kubelet, function, lambda *words, name=name, **kept: calls.append((name, words, kept)) or {}
        )
    assert live._ask(API, found, kubelets, silent) == {}
    ((name, (_, nodes, pods, _), kept),) = calls
    assert (name, pods, kept) == (called, {"there": {("default", "p")}}, more)
    if called == "proxy":
        assert sorted(nodes) == ["nowhere", "there"]
    else:
        assert nodes == {"there": ("10.0.0.7", 10260), "nowhere": ("nowhere", 10250)}
