"""Which formats there are, and who writes them. A module is imported when its format is asked for."""

import io
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from kubectl_cgaudit.audit.model import Audit
    from kubectl_cgaudit.audit.saved import Saved
    from kubectl_cgaudit.report.records import Writer
    from kubectl_cgaudit.report.screen import Screen

_RECORDS = ("json", "yaml", "csv", "ndjson", "parquet", "audit")
FORMATS = (
    "table",
    "wide",
    "json",
    "yaml",
    "csv",
    "markdown",
    "html",
    "sarif",
    "junit",
    "prometheus",
    "ndjson",
    "parquet",
    "audit",
)
OF_AN_AUDIT = (*FORMATS, "bundle")
"""Formats of a command that has read a cluster: the bundle holds what it read."""
BINARY = ("parquet", "audit", "bundle")
"""Formats that are no text."""


def has_records(name: str) -> bool:
    """Return whether a format lists every container."""
    return name in _RECORDS


def text(name: str, saved: "Saved", screen: "Screen") -> str:
    """Return a report without single containers."""
    module = import_module(f"kubectl_cgaudit.report.{'table' if name == 'wide' else name}")
    if name in ("table", "wide"):
        make: Callable[[Audit, Screen], str] = getattr(module, name)
        return make(saved.audit, screen)
    from kubectl_cgaudit.report.options import Options

    written = io.StringIO()
    module.write(saved, written, Options())
    return written.getvalue()


def writer(name: str) -> "Writer":
    """Return who writes a format that lists every container."""
    from kubectl_cgaudit.report import records

    if name == "audit":
        return _Archive()
    return records.WRITERS[name]()


class _Archive:
    """A saved audit: see `audit/saved.py`."""

    def __init__(self) -> None:
        from kubectl_cgaudit.report.records import Parquet

        self._audit: Audit | None = None
        self._parquet = Parquet()

    def head(self, audit: "Audit") -> Iterator[bytes]:
        """Keep the audit."""
        self._audit = audit
        return iter(())

    def records(self, table: "pl.DataFrame") -> bytes:
        """Keep the records."""
        return self._parquet.records(table)

    def tail(self) -> Iterator[bytes]:
        """Yield the archive."""
        from kubectl_cgaudit.audit.saved import packed

        assert self._audit is not None
        yield packed(self._audit, b"".join(self._parquet.tail()))
