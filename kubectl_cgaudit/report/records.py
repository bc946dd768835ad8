"""The formats that list every container: NDJSON, CSV, JSON, YAML and Parquet. All have the same records in the same order.

Each writer gives bytes: before the records, for each table of records, and after them. So no format needs all records at once but
Parquet, whose file ends with what is in it.
"""

import io
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec
import polars as pl
from polars import col

from kubectl_cgaudit.audit.model import Audit
from kubectl_cgaudit.audit.records import RECORD, SCHEMA, Containers
from kubectl_cgaudit.report.escape import json_bytes, visible, yaml_text

_LISTS = tuple(name for name, type_ in SCHEMA.items() if type_ == pl.List(pl.String))
_TEXTS = tuple(name for name, type_ in SCHEMA.items() if type_ == pl.String)
_CSV_COLUMNS = tuple(name for name in SCHEMA if name != "cases")
# What a spreadsheet takes for a formula, or a CI runner for a command.
_ACTS = tuple("=+-@'＝＋－＠:")
_SUSPECT = r"[^ -~]|##|^\s*['=+\-@:＝＋－＠]"


class Writer(Protocol):
    """Writes records in one format."""

    def head(self, audit: Audit) -> Iterator[bytes]:
        """Yield what comes before the records."""

    def records(self, table: pl.DataFrame) -> bytes:
        """Return some records."""

    def tail(self) -> Iterator[bytes]:
        """Yield what comes after the records."""


class Ndjson:
    """A JSON object a line."""

    def head(self, _audit: Audit) -> Iterator[bytes]:
        """Yield nothing."""
        return iter(())

    def records(self, table: pl.DataFrame) -> bytes:
        """Return a line for each container."""
        return json_bytes(_lines(table))

    def tail(self) -> Iterator[bytes]:
        """Yield nothing."""
        return iter(())


def _lines(table: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    table.write_ndjson(file)
    return file.getvalue()


class Json:
    """The audit as JSON, a finding, workload, node or container a line."""

    def __init__(self) -> None:
        self._begun = False

    def head(self, audit: Audit) -> Iterator[bytes]:
        """Yield the audit, up to its containers."""
        yield b"{"
        for place, name in enumerate(audit.__struct_encode_fields__):
            value = getattr(audit, audit.__struct_fields__[place])
            comma = b"," if place else b""
            if isinstance(value, tuple) and value:
                lines = b",\n".join(map(self._encoded, value))
                yield b'%s\n"%s": [\n%s\n]' % (comma, name.encode(), lines)
            else:
                yield b'%s\n"%s": %s' % (comma, name.encode(), self._encoded(value))
        yield b',\n"containers": ['

    def records(self, table: pl.DataFrame) -> bytes:
        """Return an item for each container."""
        if table.is_empty():
            return b""
        lines = self._harmless(_lines(table)).rstrip(b"\n").replace(b"\n", b",\n")
        comma, self._begun = b"," if self._begun else b"", True
        return comma + b"\n" + lines

    def tail(self) -> Iterator[bytes]:
        """Yield the end."""
        yield b"\n]\n}\n" if self._begun else b"]\n}\n"

    def _encoded(self, value: object) -> bytes:
        return self._harmless(msgspec.json.encode(value))

    def _harmless(self, data: bytes) -> bytes:
        """The same JSON in which no character acts."""
        return json_bytes(data)


# Of numbers with an exponent YAML 1.1 takes only those that have a point, and a sign before the exponent, for numbers.
_EXPONENT = re.compile(r"e(?<=\de)-?\d+[],}\n]")
_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d+)(\.\d+)?e([-+]?)(\d+)')
# A longer key has to be marked as one: https://yaml.org/spec/1.2.2/#742-flow-mappings
_LONG_KEY = re.compile(r'"(?<=[{,]")(?:[^"\\]|\\.){500,}"(?=:)')


class Yaml(Json):
    """The same as JSON in flow style, which every YAML reader takes; characters that act are written as YAML escapes."""

    def _harmless(self, data: bytes) -> bytes:
        text = data.decode()
        if _EXPONENT.search(text):
            text = _NUMBER.sub(_pointed, text)
        return _LONG_KEY.sub(lambda found: f"? {found[0]}", yaml_text(text)).encode()


def _pointed(found: re.Match[str]) -> str:
    digits, fraction, sign, exponent = found.groups()
    return f"{digits}{fraction or '.0'}e{sign or '+'}{exponent}" if digits else found[0]


class Csv:
    """RFC 4180, a row a container, without the other cases.

    Characters that act on a terminal are written as escapes. A cell of the cluster that a spreadsheet would take for a formula,
    or a CI runner for a command, gets an apostrophe in front, and so does one that begins with an apostrophe.
    """

    def head(self, _audit: Audit) -> Iterator[bytes]:
        """Yield the names of the columns."""
        yield ",".join(_CSV_COLUMNS).encode() + b"\r\n"

    def records(self, table: pl.DataFrame) -> bytes:
        """Return a row for each container."""
        flat = table.select(_CSV_COLUMNS).with_columns(col(name).list.join(";") for name in _LISTS)
        file = io.BytesIO()
        flat.with_columns(_cells(flat[name]) for name in (*_TEXTS, *_LISTS)).write_csv(
            file, include_header=False, line_terminator="\r\n"
        )
        return file.getvalue()

    def tail(self) -> Iterator[bytes]:
        """Yield nothing."""
        return iter(())


def _cells(texts: pl.Series) -> pl.Series:
    """A column of texts such that none acts; only distinct texts that look suspicious are looked at one by one."""
    suspect = texts.filter(texts.str.contains(_SUSPECT)).unique()
    if suspect.is_empty():
        return texts
    harmless = pl.Series([_cell(text) for text in suspect], dtype=pl.String)
    found: pl.Series = texts.replace(suspect, harmless)
    return found


def _cell(value: str) -> str:
    text = visible(value)
    return f"'{text}" if text.lstrip().startswith(_ACTS) else text


class Parquet:
    """A Parquet file, compressed with zstd. Texts are as the cluster has them."""

    def __init__(self) -> None:
        self._tables: list[pl.DataFrame] = []

    def head(self, _audit: Audit) -> Iterator[bytes]:
        """Yield nothing."""
        return iter(())

    def records(self, table: pl.DataFrame) -> bytes:
        """Keep the records."""
        self._tables.append(table)
        return b""

    def tail(self) -> Iterator[bytes]:
        """Yield the file."""
        yield parquet(pl.concat(self._tables) if self._tables else pl.DataFrame(schema=SCHEMA))


def parquet(table: pl.DataFrame) -> bytes:
    """Return a table as a Parquet file; the same table is the same bytes."""
    file = io.BytesIO()
    table.write_parquet(file, compression="zstd", statistics=True)
    return file.getvalue()


WRITERS: dict[str, Callable[[], Writer]] = {
    "json": Json,
    "yaml": Yaml,
    "ndjson": Ndjson,
    "csv": Csv,
    "parquet": Parquet,
}


def write(audit: Audit, containers: Containers, format_: str, out: Callable[[bytes], object]) -> None:
    """Write one format."""
    writer = WRITERS[format_]()
    for part in writer.head(audit):
        out(part)
    for table in containers.frames():
        out(writer.records(table))
    for part in writer.tail():
        out(part)


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record: every column is in every record, in this order."""
    return {
        "$schema": _DIALECT,
        "title": "kubectl cgaudit -o ndjson: one line, and an item of containers in -o json",
        "$comment": RECORD,
        **_object(SCHEMA),
    }


def audit_schema() -> dict[str, Any]:
    """Return the JSON Schema of `-o json`: the audit and its containers."""
    made = msgspec.json.schema(Audit)
    audit = made["$defs"]["Audit"]
    audit["properties"]["containers"] = {"type": "array", "items": {"$ref": "#/$defs/ContainerRecord"}}
    audit["required"] = [*audit["properties"]]
    made["$defs"]["ContainerRecord"] = _object(SCHEMA)
    return {"$schema": _DIALECT, "title": "kubectl cgaudit -o json", **made}


_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_JSON_TYPES: tuple[tuple[Any, str], ...] = (
    (pl.String, "string"),
    (pl.Boolean, "boolean"),
    (pl.Float64, "number"),
    (pl.Int64, "integer"),
    (pl.Int32, "integer"),
)
_ALWAYS = {
    *(
        "schema",
        "target",
        "tool_version",
        "complete",
        "namespace",
        "workload_kind",
        "workload",
        "workload_effects",
        "pod",
    ),
    *(
        "node",
        "qos",
        "handler",
        "confidence",
        "effects",
        "container",
        "role",
        "when",
        "stops",
        "cases",
        "rank",
        "leading",
    ),
    *("leading_cases", "leading_cases_stopping"),
}
"""Columns that are never null."""


def _object(columns: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _type(type_, always=name in _ALWAYS) for name, type_ in columns.items()},
        "required": list(columns),
        "additionalProperties": False,
    }


def _type(type_: Any, *, always: bool) -> dict[str, Any]:
    if isinstance(type_, pl.List):
        return {"type": "array", "items": _type(type_.inner, always=True)}
    if isinstance(type_, pl.Struct):
        return _object({field.name: field.dtype for field in type_.fields})
    name = next(name for each, name in _JSON_TYPES if type_ == each)
    return {"type": name if always else [name, "null"]}
