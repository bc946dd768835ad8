"""The recorded cluster for the tests of pages, known and blind, with the time of its recording."""

from functools import cache
from typing import Any

from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Audit
from kubectl_cgaudit.audit.records import Containers
from kubectl_cgaudit.audit.saved import Saved
from tests.support import audited, cluster, recorded_audit, recorded_blind

TIME = "2026-01-30T12:00:00Z"


@cache
def recorded() -> Audit:
    """The recorded cluster, with what its nodes really ran."""
    return replace(recorded_audit(), time=TIME)


@cache
def blind() -> Audit:
    """The recorded cluster without anything that speaks of what its nodes run."""
    return replace(audited(recorded_blind()), time=TIME)


def saved_audit(audit: Audit) -> Saved:
    """The audit with no container."""
    return Saved(audit, Containers(lambda: iter(())))


def small(*objects: Any, stated: str = "", to: str = "v2+runtime") -> Audit:
    """These Nodes, Pods and their owners."""
    return audited(cluster(*objects), stated, to)
