"""A saved audit, `-o audit=FILE.cgaudit`: a zip of the audit as JSON and of its containers as Parquet. `-o json` is read, too."""

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import polars as pl

from kubectl_cgaudit.audit.model import SCHEMA, Audit
from kubectl_cgaudit.audit.records import SCHEMA as RECORD
from kubectl_cgaudit.audit.records import Containers
from kubectl_cgaudit.collect.input import LIMIT, input_limit
from kubectl_cgaudit.collect.snapshot import is_snapshot
from kubectl_cgaudit.errors import InputError

REMEDY = "save an audit with: kubectl cgaudit -o audit=FILE.cgaudit"
_AUDIT, _CONTAINERS = "audit.json", "containers.parquet"
_MAGIC = b"PK\x03\x04"
_LEAST_RECORD = sum(8 for type_ in RECORD.values() if type_ in (pl.Float64, pl.Int64))
"""Bytes in memory of a record without its texts."""
_ROWS_A_TABLE = 10_000
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Saved(NamedTuple):
    """An audit and the records of its containers."""

    audit: Audit
    containers: Containers


class _Head(msgspec.Struct, rename="camel"):
    schema: str | None = None
    schema_version: str | None = None


def packed(audit: Audit, containers: bytes) -> bytes:
    """Return a saved audit, from the Parquet file of its containers. The same audit is the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        encoded = msgspec.json.encode(audit)
        for name, data, method in (
            (_AUDIT, encoded, zipfile.ZIP_DEFLATED),
            (_CONTAINERS, containers, zipfile.ZIP_STORED),
        ):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o600 << 16
            archive.writestr(info, data, method)
    return file.getvalue()


def load(data: bytes, source: str) -> Saved:
    """Return the saved audit in `data`. Raises InputError where it is none, or damaged."""
    if data.startswith(_MAGIC):
        parts = _unpacked(data, source)
        audit = _decoded(parts[_AUDIT], source)
        return Saved(audit, _records(parts[_CONTAINERS], source))
    audit = _decoded(data, source)
    try:
        rows = msgspec.json.decode(data, type=_WithContainers).containers
        table = pl.DataFrame(rows, schema=RECORD, orient="row", strict=False)
    except (msgspec.MsgspecError, pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{source} is a damaged audit: {_plain(error)}; {REMEDY}") from None
    return Saved(audit, Containers(lambda: table.iter_slices(_ROWS_A_TABLE)))


def load_audit(data: bytes, source: str) -> Audit:
    """Return the audit in `data` without its containers. Raises InputError like `load`."""
    if data.startswith(_MAGIC):
        return _decoded(_unpacked(data, source)[_AUDIT], source)
    return _decoded(data, source)


class _WithContainers(msgspec.Struct):
    containers: list[dict[str, Any]] = []


def _unpacked(data: bytes, source: str) -> dict[str, bytes]:
    said, limit = input_limit()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = {info.filename: info for info in archive.infolist()}
            if not {_AUDIT, _CONTAINERS} <= {*infos}:
                raise InputError(f"{source} is a zip archive and holds no audit; {REMEDY}")
            # What a part says of its size is all that is read of it.
            if sum(infos[name].file_size for name in (_AUDIT, _CONTAINERS)) > limit:
                raise _too_large(source, said)
            return {name: archive.read(name) for name in (_AUDIT, _CONTAINERS)}
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(f"{source} is a damaged audit: {_plain(error)}; {REMEDY}") from None


def _too_large(source: str, said: str) -> InputError:
    return InputError(f"{source} holds more than {said} unpacked; if that is right, set {LIMIT} to more, such as 16Gi")


def _plain(error: BaseException) -> str:
    """The first line of what a library says of a damaged file."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _decoded(data: bytes, source: str) -> Audit:
    if is_snapshot(data):
        raise InputError(
            f"{source} is a snapshot of a cluster, not an audit; audit it with: kubectl cgaudit -f SNAPSHOT -o json=FILE"
        )
    try:
        head = msgspec.json.decode(data, type=_Head)
    except msgspec.ValidationError:
        head = _Head()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{source} is not valid JSON: {error}; {REMEDY}") from None
    if head.schema_version is not None and head.schema is None:
        raise InputError(f"{source} was written by a development version before 0.1.0; audit again and save that")
    if head.schema is None:
        raise InputError(f"{source} holds no audit (it has no schema); {REMEDY}")
    if head.schema != SCHEMA:
        raise InputError(
            f"{source} has schema {head.schema}, and this cgaudit reads {SCHEMA}; use the release that wrote it"
        )
    try:
        audit = msgspec.json.decode(data, type=Audit)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{source} is a damaged audit: {error}; {REMEDY}") from None
    for problem in _problems(audit):
        raise InputError(f"{source} is a damaged audit: {problem}; {REMEDY}")
    return audit


def _problems(audit: Audit) -> Iterator[str]:
    """Yield what every audit says of its nodes and this one does not."""
    for node in audit.nodes:
        if "cgroup" not in node.known:
            yield f"of node {node.name} it does not say cgroup"
        if not node.cases:
            yield f"node {node.name} has no case"


def _records(data: bytes, source: str) -> Containers:
    said, limit = input_limit()
    try:
        rows = pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item()
        # A column of one value takes no room in the file, and much in memory.
        if rows * _LEAST_RECORD > limit:
            raise _too_large(source, said)
        table = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, MemoryError) as error:
        raise InputError(f"{source} is a damaged audit: {_plain(error)}; {REMEDY}") from None
    if table.schema != pl.Schema(RECORD):
        raise InputError(f"{source} is a damaged audit: its containers have other columns; {REMEDY}")
    return Containers(lambda: table.iter_slices(_ROWS_A_TABLE))
