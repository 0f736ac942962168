"""Quantities are exact, and print as Kubernetes prints them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import quantity

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_means_its_multiple(suffix: str):
    assert quantity.parse(f"2{suffix}").nanos == 2 * SUFFIXES[suffix] * 10**9


@pytest.mark.parametrize(
    ("text", "value"), [("1e3", 1000), ("1E3", 1000), ("5e-1", 1), ("1.5e+2", 150), ("1E", 10**18)]
)
def test_an_exponent_is_told_from_the_suffix_e(text: str, value: int):
    assert quantity.value(text) == value


@given(
    whole=st.integers(0, 10**9),
    decimals=st.text("0123456789", max_size=9),
    suffix=st.sampled_from(sorted(SUFFIXES)),
)
def test_parsing_is_exact_up_to_the_next_nano(whole: int, decimals: str, suffix: str):
    digits = Fraction(whole) + (Fraction(int(decimals), 10 ** len(decimals)) if decimals else 0)
    exact = digits * SUFFIXES[suffix] * 10**9
    rounded = -(-exact.numerator // exact.denominator)

    found = quantity.parse(f"{whole}.{decimals}{suffix}").nanos

    assert found == min(rounded, quantity.MAX_UNITS * 10**9)


@given(st.integers(-(10**15), 10**15), st.sampled_from(sorted(SUFFIXES)))
def test_the_canonical_text_means_the_same_amount(number: int, suffix: str):
    text = f"{number}{suffix}"
    assert quantity.parse(quantity.canonical(text)).nanos == quantity.parse(text).nanos


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1500m", "1500m"),
        ("2000m", "2"),
        ("0.1", "100m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000000", "1M"),
        ("0.5Ki", "512"),
        ("0.0005Ki", "512m"),
        ("1e3", "1e3"),
        ("1e4", "10e3"),
        ("12e0", "12"),
        ("0", "0"),
        ("-1.5", "-1500m"),
        ("1n", "1n"),
        ("100000Ki", "100000Ki"),
        ("1023", "1023"),
        ("2Ei", "2Ei"),
    ],
)
def test_the_canonical_text_has_no_fraction_and_the_largest_suffix(text: str, canonical: str):
    assert quantity.canonical(text) == canonical


def test_amounts_are_rounded_up():
    assert quantity.milli("1u") == 1
    assert quantity.milli("1.0001") == 1001
    assert quantity.value("100m") == 1
    assert quantity.parse("0.0000000001").nanos == 1


def test_amounts_saturate_so_that_they_always_fit_an_int64():
    for text in ("100E", "1e999999999", "9" * 60, 10**60):
        assert quantity.value(text) == 2**63 - 1
        assert quantity.milli(text) == 2**63 - 1
    assert quantity.value("-1e40") == quantity.value(-(10**60)) == -(2**63 - 1)
    assert quantity.value("0e99999999999") == 0
    assert quantity.value("1e-99999999999") == 1


def test_numbers_of_json_are_quantities_too():
    assert quantity.value(3) == 3
    assert quantity.milli(0.1) == 100
    assert quantity.value(1e3) == 1000


@pytest.mark.parametrize(
    "bad",
    ["", "abc", ".", "1K", "1kB", "1e", "1e+", "1.2.3", "--1", "1 Ki", " 1", "1i", "Ki", "1Kim", "١", "9" * 300, True],
)
def test_anything_else_is_refused(bad: object):
    with pytest.raises(ValueError, match="quantity"):
        quantity.parse(bad)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_floats_that_are_no_numbers_are_refused(bad: float):
    with pytest.raises(ValueError, match="quantity"):
        quantity.parse(bad)


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_a_value_error(text: str):
    try:
        nanos = quantity.parse(text).nanos
    except ValueError:
        return
    assert abs(nanos) <= quantity.MAX_UNITS * 10**9
