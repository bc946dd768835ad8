"""Durations as Go writes them."""

from decimal import Decimal

import pytest

from kubectl_cgaudit.duration import microseconds


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1h", 3_600_000_000),
        ("1h2m3s4ms5us6ns", Decimal("3723004005.006")),
        ("1ns", Decimal("0.001")),
        ("0s", 0),
        ("1.s", 1_000_000),
        (".25ms", 250),
        ("7µs", 7),
        ("7μs", 7),
    ],
)
def test_microseconds(text: str, found: int) -> None:
    assert microseconds(text) == found


@pytest.mark.parametrize(
    "text", ["", "0", "5", "s", ".s", "1.2.3s", "-1s", "+1s", "1 s", "1s ", "1d", "1M", "١s", "9" * 64 + "s"]
)
def test_no_duration(text: str) -> None:
    assert microseconds(text) is None
