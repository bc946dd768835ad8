"""An audit that was saved as JSON, read again."""

from collections.abc import Iterator
from itertools import chain
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kubectl_cgaudit.collect.snapshot import is_snapshot
from kubectl_cgaudit.errors import InputError
from kubectl_cgaudit.judge.audit import SCHEMA_VERSION, Audit, CaseChange
from kubectl_cgaudit.judge.rounding import LEAST

T = TypeVar("T")
REMEDY = "save an audit with: kubectl cgaudit -o json=FILE"


class _Version(msgspec.Struct, rename="camel"):
    schema_version: str | None = None


def load(data: bytes, source: str) -> Audit:
    """Return the audit in `data`. Raises InputError where it is none, or one of another major version."""
    audit = decode(data, source, Audit)
    for problem in _problems(audit):
        raise InputError(f"{source} is a damaged audit: {problem}; {REMEDY}")
    return replace(audit, schema_version=SCHEMA_VERSION)


def decode(data: bytes, source: str, type_: type[T]) -> T:
    """What `type_` has of the audit in `data`. Raises InputError like `load`."""
    if is_snapshot(data):
        raise InputError(
            f"{source} is a snapshot of a cluster, not an audit; audit it with: kubectl cgaudit -f SNAPSHOT -o json=FILE"
        )
    try:
        version = msgspec.json.decode(data, type=_Version).schema_version
    except msgspec.ValidationError:
        version = None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{source} is not valid JSON: {error}; {REMEDY}") from None
    if version is None:
        raise InputError(f"{source} holds no audit (it has no schemaVersion); {REMEDY}")
    if version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
        raise InputError(
            f"{source} has schema version {version}, and this cgaudit reads {SCHEMA_VERSION}; use the release that wrote it"
        )
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{source} is a damaged audit: {error}; {REMEDY}") from None


def _problems(audit: Audit) -> Iterator[str]:
    """Where the parts of an audit do not fit together: no renderer has to ask again."""
    for node in audit.nodes:
        if len({frozenset(each.runtimes) for case in node.cases for each in (case.before, case.after)}) > 1:
            yield f"node {node.name} has other handlers in one case than in another, or before than after"
        if missing := {"cgroup", "system_slice"} - set(node.known):
            yield f"of node {node.name} it does not say {min(missing)}"
    cases = {node.name: len(node.cases) for node in audit.nodes}
    for workload in audit.workloads:
        names = {pod.name for pod in workload.pods}
        told = (workload.share, workload.against_system, workload.against_system_best, workload.inside_pod)
        if any(change is not None and change.pod not in names for change in told):
            yield f"{workload.title} speaks of a pod that it does not have"
        for pod in workload.pods:
            if pod.node not in cases:
                yield f"pod {workload.namespace}/{pod.name} is on a node that is not there"
            elif {len(pod.cases), *(len(each.cases) for each in pod.containers)} != {cases[pod.node]}:
                yield f"pod {workload.namespace}/{pod.name} has other cases than its node"
            elif any(map(_too_small, chain(pod.cases, *[each.cases for each in pod.containers]))):
                yield f"pod {workload.namespace}/{pod.name} has a share that is less than the least that is shown"


def _too_small(case: CaseChange) -> bool:
    """Whether a change from a share of this case is beyond all numbers: what is shown is 0, or LEAST and more."""
    for moment in (case.before, case.after):
        for share in (moment.share, moment.against_system, moment.in_pod):
            if share and share < LEAST:
                return True
    return False
