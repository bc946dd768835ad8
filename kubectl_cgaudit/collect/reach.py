"""Whether an audit may read what it needs, and how much that is: the first page of each list is asked for."""

from time import monotonic

from msgspec import Struct

from kubectl_cgaudit.collect.http import RequestError
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.live import NODES, OPTIONAL, PODS
from kubectl_cgaudit.collect.pages import PAGE_SIZE, Resource, first_page
from kubectl_cgaudit.collect.progress import Progress
from kubectl_cgaudit.collect.transport import Api


class Reach(Struct, frozen=True):
    """How far reading a list would get."""

    plural: str
    needed: bool
    """Whether there is no audit without it."""
    refused: str
    """Why it may not be read, empty where it may."""
    instead: str
    """What an audit does without it."""
    objects: int | None
    """How many there are; None where the server does not say, or refuses."""
    pages: int | None
    seconds: float
    """What the first page took."""


def reach(connection: Connection, progress: Progress) -> tuple[str, list[Reach]]:
    """Return what the cluster is called, and of each list of an audit how far reading it would get.

    Raises ClusterError where the cluster cannot be asked at all.
    """
    found = []
    with Api(connection) as api:
        for resource in (NODES, PODS, *OPTIONAL):
            progress(resource.plural.lower(), 0, None)
            found.append(_of(api, resource))
        return api.source, found


def _of(api: Api, resource: Resource) -> Reach:
    began = monotonic()
    objects = pages = None
    refused = ""
    try:
        count, left = first_page(api, resource)
    except RequestError as failure:
        if resource is NODES and failure.status not in (401, 403, 404):
            raise
        refused = failure.why
    else:
        objects = None if left is None else count + left
        pages = None if objects is None else max(1, -(-objects // PAGE_SIZE))
    seconds = monotonic() - began
    return Reach(resource.plural, not resource.instead, refused, resource.instead, objects, pages, seconds)
