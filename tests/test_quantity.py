"""Kubernetes quantities."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_cgaudit.collect.quantity import milli
from kubectl_cgaudit.errors import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250m", 250),
        ("1", 1000),
        ("0.5", 500),
        (".5", 500),
        ("2.", 2000),
        ("+1", 1000),
        ("0", 0),
        ("-0", 0),
        ("1u", 1),
        ("1n", 1),
        ("1001u", 2),
        ("0.0001", 1),
        ("1k", 1_000_000),
        ("1Ki", 1_024_000),
        ("2e3", 2_000_000),
        ("5E-2", 50),
        ("1E3", 1_000_000),
        ("9223372036854775807m", 2**63 - 1),
        (2, 2000),
        (1.5, 1500),
    ],
)
def test_a_quantity_is_read_and_rounded_up_to_a_thousandth(text: str, expected: int) -> None:
    assert milli(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("banana", "'banana' is not a CPU quantity such as 250m or 2"),
        ("", "'' is not a CPU quantity such as 250m or 2"),
        ("1 ", "'1 ' is not a CPU quantity such as 250m or 2"),
        ("1m\n", "'1m\\n' is not a CPU quantity such as 250m or 2"),
        ("١", "'١' is not a CPU quantity such as 250m or 2"),
        ("0x10", "'0x10' is not a CPU quantity such as 250m or 2"),
        ("nan", "'nan' is not a CPU quantity such as 250m or 2"),
        ("-1", "'-1' is negative, which no CPU quantity may be"),
        ("1e400", "'1e400' is larger than any CPU quantity can be"),
        ("9223372036854775808m", "'9223372036854775808m' is larger than any CPU quantity can be"),
        ("1e99999999999", "'1e99999999999' is not a CPU quantity such as 250m or 2"),
    ],
)
def test_anything_else_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        milli(text)
    assert str(caught.value) == message


@given(st.text(max_size=80))
def test_no_text_raises_anything_but_input_error(text: str) -> None:
    with contextlib.suppress(InputError):
        assert milli(text) >= 0


@given(st.integers(0, 10**9), st.sampled_from(["m", "", "k", "u", "n"]))
def test_thousandths_never_round_down(amount: int, suffix: str) -> None:
    scale = {"n": -6, "u": -3, "m": 0, "": 3, "k": 6}[suffix]
    exact = amount * 10**scale if scale >= 0 else -(-amount // 10**-scale)
    assert milli(f"{amount}{suffix}") == exact
