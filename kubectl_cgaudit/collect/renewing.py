"""The API server and the kubelets, asked by several threads with credentials that may expire meanwhile."""

import threading
from collections.abc import Callable

import msgspec
from msgspec import Struct

from kubectl_cgaudit.collect import wire
from kubectl_cgaudit.collect.http import Answer, Door, RequestError, UnreachableError
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError

REFUSED = "the API server refuses the credentials"


class _Kind(Struct):
    kind: str = ""


class Renewing:
    """Logs in again once for all of the threads."""

    def __init__(self, api: Api, seconds: float, limit: int) -> None:
        self._api = api
        self._seconds = seconds
        self._limit = limit
        self._lock = threading.Lock()
        self._door = api.door(seconds, limit)
        # The lists were read with these. Those that never were good are not renewed: 5,000 nodes would log in as often.
        self._good: Door | None = None if api.unproven else self._door

    def get(self, path: str, ends: float) -> Answer:
        """As Door.get, once more where the credentials are refused and others can be had."""
        door = self._door
        answer = door.get(path, ends)
        if is_refusal(answer) and (renewed := self._after(door)):
            door = renewed
            answer = door.get(path, ends)
        if door is self._door and not is_refusal(answer):
            self._good = door
        return answer

    def _after(self, refused: Door) -> Door | None:
        """The server with the credentials that follow; None where there are none."""
        with self._lock:
            if self._door is refused and self._good is refused:
                self._good = None
                try:
                    self._api.renew(refused)
                    self._door = self._api.door(self._seconds, self._limit)
                except ClusterError as error:
                    raise UnreachableError(str(error), f"{REFUSED}: {error}") from None
            return None if self._door is refused else self._door


class OwnPort:
    """A kubelet at its own port. Only the API server can tell whether what it refuses has expired."""

    def __init__(self, door_to: Callable[[], Door], server: Renewing) -> None:
        self._door_to = door_to
        self._server = server
        self._door = door_to()
        self._told = False

    def get(self, path: str, ends: float) -> Answer:
        """As Door.get, once more where the credentials had expired."""
        answer = self._door.get(path, ends)
        if answer.status != 401 or self._told:
            return answer
        self._told = True
        try:
            self._server.get("/version", ends)
            fresh = self._door_to()
        except RequestError as failure:
            if failure.why.startswith(REFUSED):
                raise
            return answer
        except ClusterError as error:
            raise UnreachableError(str(error), f"{REFUSED}: {error}") from None
        if fresh.headers is self._door.headers:
            return answer
        self.close()
        self._door = fresh
        return fresh.get(path, ends)

    def close(self) -> None:
        """Close its connections."""
        self._door.pool.clear()


def is_refusal(answer: Answer) -> bool:
    """Whether the API server itself refuses the credentials; a kubelet behind its proxy would say it in plain text."""
    try:
        return answer.status == 401 and msgspec.json.decode(answer.body, type=_Kind).kind == "Status"
    except wire.UNDECODABLE:
        return False
