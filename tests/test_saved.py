"""The saved audit: read back as it was, and refused in one sentence where it is none."""

import io
import json
import zipfile

import polars as pl
import pytest

from kubectl_cgaudit.audit.records import SCHEMA
from kubectl_cgaudit.audit.saved import load, load_audit
from kubectl_cgaudit.errors import InputError
from tests.test_records import BLIND, KNOWN, rows, written

ARCHIVE = written("audit", KNOWN)


@pytest.mark.parametrize("name", ["audit", "json"])
def test_it_is_read_back_as_it_was(name: str) -> None:
    for found in (KNOWN, BLIND):
        data = written(name, found)
        again = load(data, "a")
        assert again.audit == found.audit == load_audit(data, "a")
        assert rows(again) == rows(found)
        for format_ in ("json", "ndjson", "csv", "audit"):
            assert written(format_, again) == written(format_, found)


def _zip(**parts: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name.replace("_", "."), data)
    return file.getvalue()


def _part(name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(ARCHIVE)) as archive:
        return archive.read(name)


def _parquet(table: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    table.write_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{}", "holds no audit (it has no schema)"),
        (b'{"schemaVersion": "2.0"}', "was written by a development version"),
        (b'{"schema": "cgaudit.audit/9"}', "has schema cgaudit.audit/9"),
        (b'{"schema": ', "is not valid JSON"),
        (b"[1]", "holds no audit (it has no schema)"),
        (ARCHIVE[:400], "is a damaged audit"),
        (ARCHIVE[:-30], "is a damaged audit"),
        (_zip(x_json=b"{}"), "is a zip archive and holds no audit"),
        (_zip(audit_json=_part("audit.json"), containers_parquet=b"PAR1"), "is a damaged audit"),
        (_zip(audit_json=_part("audit.json"), containers_parquet=_parquet(pl.DataFrame({"a": [1]}))), "other columns"),
    ],
)
def test_what_is_no_audit_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=r"^FILE ") as raised:
        load(data, "FILE")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGAUDIT_MAX_INPUT_SIZE", "1Mi")
    load(ARCHIVE, "FILE")
    bomb = _zip(audit_json=b" " * (4 << 20), containers_parquet=b"")
    assert len(bomb) < 10_000
    with pytest.raises(InputError, match="more than 1Mi unpacked"):
        load(bomb, "FILE")
    many = pl.DataFrame({"a": [None]}).select(
        pl.lit(None, type_).alias(name).repeat_by(1).explode() for name, type_ in SCHEMA.items()
    )
    packed = _parquet(pl.concat([many] * 1).select(pl.all().repeat_by(20_000).explode()))
    assert len(packed) < 100_000
    with pytest.raises(InputError, match="more than 1Mi unpacked"):
        load(_zip(audit_json=_part("audit.json"), containers_parquet=packed), "FILE")


def test_damaged_records_end_in_one_sentence() -> None:
    data = _part("containers.parquet")
    said = []
    for place in range(4, len(data), max(1, len(data) // 60)):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        try:
            load(_zip(audit_json=_part("audit.json"), containers_parquet=bytes(damaged)), "FILE")
        except InputError as error:
            said.append(str(error))
    assert len(said) > 5
    assert not [each for each in said if "\n" in each or "is a damaged audit" not in each]


def test_json_whose_containers_are_none_is_refused() -> None:
    document = json.loads(written("json", KNOWN))
    for wrong in ("x", [1], [{"pod": {"a": 1}}], [{"before_share": "x"}]):
        document["containers"] = wrong
        with pytest.raises(InputError):
            load(json.dumps(document).encode(), "FILE")
