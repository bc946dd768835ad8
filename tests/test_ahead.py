"""The next page is asked for while a page is worked on: what that may cost, and what it may not."""

import gzip
import threading
from pathlib import Path

import pytest

from kubectl_cgaudit.collect.http import Ahead, Answer, RequestError, UnreachableError
from kubectl_cgaudit.collect.pages import _leads_to
from kubectl_cgaudit.errors import ClusterError
from tests.vcr_support import Scripted, api

pytestmark = pytest.mark.usefixtures("home")

FIRST, SECOND = Answer(200, b"first"), Answer(200, b"second")
SECONDS = 10.0


def body(answer: Answer) -> bytes:
    return answer.body


def test_the_next_page_is_asked_for_before_this_one_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came = threading.Event()

    class Watched(Scripted):
        def ask(self, path: str, ends: float) -> Answer:
            answer = super().ask(path, ends)
            if path == "/2":
                came.set()
            return answer

        def unpacked(self, answer: Answer) -> Answer:
            assert came.wait(SECONDS)
            return answer

    scripted = Watched(FIRST, SECOND)
    with api(tmp_path, monkeypatch, scripted) as asked:
        assert asked.fetch("/1", body, leads_to=lambda _answer: "/2") == b"first"
        assert asked.fetch("/2", body) == b"second"
    assert scripted.paths == ["/1", "/2"]


def test_what_goes_wrong_ahead_is_tried_again_as_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    scripted = Scripted(FIRST, UnreachableError("away", "away"), Answer(503, b""), SECOND)
    with api(tmp_path, monkeypatch, scripted) as asked:
        assert asked.fetch("/1", body, leads_to=lambda _answer: "/2") == b"first"
        assert asked.fetch("/2", body) == b"second"
    assert (scripted.paths, pauses) == (["/1", "/2", "/2", "/2"], [0.5, 1.0])


def test_what_a_damaged_page_led_to_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """A list that starts again has other tokens: each answer that nobody asks for again would be kept to the end."""
    tokens = iter(["old", "new"])

    def understand(answer: Answer) -> bytes:
        if answer is FIRST:
            raise RequestError("damaged", "damaged")
        return answer.body

    class ByPath(Scripted):
        def ask(self, path: str, ends: float) -> Answer:
            if path != "/1":
                self.paths.append(path)
                return Answer(200, path.encode())
            return super().ask(path, ends)

    scripted = ByPath(FIRST, Answer(200, b"first again"))
    with api(tmp_path, monkeypatch, scripted) as asked:
        assert asked.fetch("/1", understand, leads_to=lambda _answer: f"/{next(tokens)}") == b"first again"
        assert [*asked._ahead] == ["/new"]
        assert asked.fetch("/new", body) == b"/new"
        assert [*asked._ahead] == []
    assert (sorted(scripted.paths), pauses) == (["/1", "/1", "/new", "/old"], [0.5])


def test_what_waits_its_turn_is_not_sent_after_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(FIRST)
    with api(tmp_path, monkeypatch, scripted) as asked:
        with asked._in_flight, asked._in_flight:
            waiting = Ahead(lambda: asked.fetch("/late", body))
            asked.__exit__(None, None, None)
        with pytest.raises(ClusterError, match="is asked no more"):
            waiting.result()
    assert scripted.paths == []


def test_a_wrong_guess_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(FIRST, Answer(200, b"nobody's"), SECOND)
    with api(tmp_path, monkeypatch, scripted) as asked:
        assert asked.fetch("/1", body, leads_to=lambda _answer: "/wrong") == b"first"
        asked._ahead["/wrong"].result()
        assert asked.fetch("/2", body) == b"second"


def test_no_more_than_two_requests_are_on_their_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two, go = threading.Semaphore(0), threading.Event()
    asking: list[str] = []

    class Slow(Scripted):
        def ask(self, path: str, ends: float) -> Answer:
            asking.append(path)
            two.release()
            go.wait(SECONDS)
            return super().ask(path, ends)

    with api(tmp_path, monkeypatch, Slow(*[FIRST] * 4)) as asked:
        all_of_them = [Ahead(lambda path=path: asked.fetch(path, body)) for path in "abcd"]  # type: ignore[misc]
        assert two.acquire(timeout=SECONDS)
        assert two.acquire(timeout=SECONDS)
        assert not two.acquire(timeout=0.1)
        assert len(asking) == 2
        go.set()
        assert [each.result() for each in all_of_them] == [b"first"] * 4


def head(metadata: str, items: str = "[]") -> bytes:
    return f'{{"kind":"PodList","apiVersion":"v1","metadata":{metadata},"items":{items}}}'.encode()


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        (
            Answer(200, head('{"resourceVersion":"1","continue":"a.b-c","remainingItemCount":5}')),
            "/p?limit=2&continue=a.b-c",
        ),
        (Answer(200, head('{ "continue" : "a+b/c=" }')), "/p?limit=2&continue=a%2Bb%2Fc%3D"),
        (
            Answer(200, gzip.compress(head('{"continue":"t"}', f"[{'1,' * 9000}1]")), packed=True),
            "/p?limit=2&continue=t",
        ),
        (Answer(200, gzip.compress(head('{"continue":"t"}'))[:-9], packed=True), "/p?limit=2&continue=t"),
        (Answer(200, head('{"continue":""}')), None),
        (Answer(200, head('{"continue":"a\\u0062"}')), None),
        (Answer(200, head("{}", '[{"continue":"t"}]')), None),
        (Answer(200, b" " * 2000 + head('{"continue":"t"}')), None),
        (Answer(410, head('{"continue":"t"}')), None),
        (Answer(200, b"no gzip", packed=True), None),
        (Answer(200, b""), None),
    ],
)
def test_a_glance_at_a_page_says_where_the_next_one_is(answer: Answer, path: str | None) -> None:
    assert _leads_to("/p?limit=2", answer) == path


def test_who_waits_no_longer_than_so_many_seconds_is_told() -> None:
    over = threading.Event()
    late: Ahead[bool] = Ahead(over.wait)
    with pytest.raises(TimeoutError):
        late.result(0.01)
    over.set()
    # What comes later may still be had.
    assert late.result(SECONDS) is True
