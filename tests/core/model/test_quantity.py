"""Quantities are read exactly, as Kubernetes reads them, and none is expensive to read."""

import gzip
import json
from decimal import Decimal
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from situate.core.model.quantity import (
    EXPONENT_TOO_LARGE,
    FORMAT_WRONG,
    MAX_EXPONENT,
    MAX_LENGTH,
    SUFFIX_WRONG,
    TOO_LONG,
    QuantityError,
    RawQuantity,
    milli_value,
    parse_milli,
    parse_quantity,
    value,
)

INT64_MAX = 2**63 - 1
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


def away_from_zero(number: Fraction) -> int:
    return ceil(number) if number >= 0 else -ceil(-number)


@pytest.mark.parametrize(
    "text, milli, units",
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("100m", 100, 1, id="a tenth counts as one unit"),
        pytest.param("1.5", 1500, 2, id="a fraction is rounded up"),
        pytest.param("0.1", 100, 1, id="a decimal fraction"),
        pytest.param("1500m", 1500, 2, id="thousandths"),
        pytest.param("0.1m", 1, 1, id="less than a thousandth counts as one"),
        pytest.param("5n", 1, 1, id="billionths"),
        pytest.param("1u", 1, 1, id="millionths"),
        pytest.param("1k", 10**6, 1000, id="k is a thousand"),
        pytest.param("1Ki", 1024 * 1000, 1024, id="Ki is 1024"),
        pytest.param("1.5Gi", 1536 * 2**20 * 1000, 1536 * 2**20, id="a fraction of a binary unit"),
        pytest.param("129e6", 129 * 10**9, 129 * 10**6, id="an exponent"),
        pytest.param("1E3", 10**6, 1000, id="a capital exponent"),
        pytest.param("1E", 10**21, 10**18, id="E alone is exa"),
        pytest.param("1e-3", 1, 1, id="a negative exponent"),
        pytest.param(".5", 500, 1, id="no digit before the point"),
        pytest.param("1.", 1000, 1, id="no digit after the point"),
        pytest.param("+1", 1000, 1, id="a plus sign"),
        pytest.param(" 2 ", 2000, 2, id="spaces around it"),
        pytest.param("007", 7000, 7, id="leading zeros"),
        pytest.param("-1.5", -1500, -2, id="a negative one is rounded away from zero"),
        pytest.param(3, 3000, 3, id="a JSON integer"),
        pytest.param(0.5, 500, 1, id="a JSON fraction"),
        pytest.param(1e20, INT64_MAX, INT64_MAX, id="a JSON number in scientific notation, beyond int64"),
        pytest.param("8Ei", INT64_MAX, INT64_MAX, id="a binary quantity is capped at int64"),
        pytest.param("9223372036854775807", INT64_MAX, INT64_MAX, id="the largest int64"),
        pytest.param("1e30", INT64_MAX, INT64_MAX, id="the largest exponent"),
    ],
)
def test_a_quantity_has_a_value_in_thousandths_and_in_units(text: RawQuantity, milli: int, units: int) -> None:
    assert (min(milli, INT64_MAX), units) == (milli_value(text), value(text))


@pytest.mark.parametrize(
    "text, problem",
    [
        pytest.param("", FORMAT_WRONG, id="empty"),
        pytest.param("  ", FORMAT_WRONG, id="only spaces"),
        pytest.param("one", FORMAT_WRONG, id="a word"),
        pytest.param("1 Gi", FORMAT_WRONG, id="a space before the suffix"),
        pytest.param("1,5", FORMAT_WRONG, id="a comma"),
        pytest.param("1.2.3", FORMAT_WRONG, id="two points"),
        pytest.param("--1", FORMAT_WRONG, id="two signs"),
        pytest.param("0x10", FORMAT_WRONG, id="hexadecimal"),
        pytest.param("１", FORMAT_WRONG, id="a full-width digit"),
        pytest.param("١", FORMAT_WRONG, id="an Arabic digit"),
        pytest.param("1\n2", FORMAT_WRONG, id="a line break"),
        pytest.param("m", FORMAT_WRONG, id="a suffix without digits"),
        pytest.param(".", FORMAT_WRONG, id="a point without digits"),
        pytest.param("-", FORMAT_WRONG, id="a sign without digits"),
        pytest.param("1KI", FORMAT_WRONG, id="a suffix of letters that no suffix has"),
        pytest.param("1K", SUFFIX_WRONG, id="kilo in capitals"),
        pytest.param("1ki", SUFFIX_WRONG, id="kibi in lower case"),
        pytest.param("1mm", SUFFIX_WRONG, id="a suffix twice"),
        pytest.param("1e", SUFFIX_WRONG, id="an exponent without digits"),
        pytest.param("1e+", SUFFIX_WRONG, id="an exponent of a sign"),
        pytest.param("1e31", EXPONENT_TOO_LARGE, id="an exponent one too large"),
        pytest.param("1e-31", EXPONENT_TOO_LARGE, id="an exponent one too small"),
        pytest.param("1e100000000", EXPONENT_TOO_LARGE, id="an exponent that would fill the memory"),
        pytest.param("1E-999999999", EXPONENT_TOO_LARGE, id="an exponent that would never end"),
        pytest.param("9" * (MAX_LENGTH + 1), TOO_LONG, id="one digit too long"),
        pytest.param(10**MAX_LENGTH, TOO_LONG, id="an integer one digit too long"),
        pytest.param(float("inf"), FORMAT_WRONG, id="infinity"),
        pytest.param(float("nan"), FORMAT_WRONG, id="not a number"),
    ],
)
def test_what_is_not_a_quantity_is_refused_with_a_reason(text: RawQuantity, problem: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == problem


numbers = st.from_regex(r"[+-]?([0-9]{1,20}(\.[0-9]{0,14})?|\.[0-9]{1,14})", fullmatch=True, alphabet="0123456789.+-")


@given(numbers, st.sampled_from(sorted(SUFFIXES)))
@example("9223372036854775807", "Ei")
@example("-0.0000000001", "Ki")
def test_suffixes_agree_with_fractions(number: str, suffix: str) -> None:
    exact = Fraction(Decimal(number)) * SUFFIXES[suffix]
    if suffix.endswith("i"):
        exact = max(min(exact, Fraction(INT64_MAX)), Fraction(-INT64_MAX))
    nanos = away_from_zero(exact * 10**9)
    assert parse_quantity(number + suffix) == nanos
    assert parse_milli(number + suffix) == away_from_zero(Fraction(nanos, 10**6))
    assert value(number + suffix) == max(min(away_from_zero(Fraction(nanos, 10**9)), INT64_MAX), -INT64_MAX - 1)


@given(numbers, st.integers(-MAX_EXPONENT, MAX_EXPONENT), st.sampled_from(["e", "E"]))
def test_exponents_agree_with_fractions(number: str, exponent: int, letter: str) -> None:
    exact = Fraction(Decimal(number)) * Fraction(10) ** exponent
    assert parse_quantity(f"{number}{letter}{exponent}") == away_from_zero(exact * 10**9)
    assert parse_quantity(f"{number}{letter}{exponent:+d}") == away_from_zero(exact * 10**9)


@given(st.one_of(st.text(max_size=80), st.from_regex(r"[0-9.+\-eEinumkKMGTP]{0,80}", fullmatch=True)))
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    try:
        nanos = parse_quantity(text)
    except QuantityError:
        return
    assert abs(nanos) < 10 ** (MAX_LENGTH + MAX_EXPONENT + 10)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e29, max_value=1e29))
def test_a_float_is_read_by_its_shortest_digits(number: float) -> None:
    if 0 < abs(number) < 1e-29:
        return
    assert parse_quantity(number) == away_from_zero(Fraction(Decimal(repr(number))) * 10**9)


def golden() -> list[dict[str, object]]:
    """Texts, and what k8s.io/apimachinery v0.36.4 makes of them; where it overflows, no value is given."""
    path = Path(__file__).parent / "data" / "quantities.jsonl.gz"
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_kubernetes_reads_the_same_quantities() -> None:
    differences = []
    for case in golden():
        text = str(case["text"])
        try:
            nanos: str | None = str(parse_quantity(text))
        except QuantityError:
            nanos = None
        if nanos != case["nanos"]:
            differences.append((text, nanos, case["nanos"]))
        if "value" in case and value(text) != case["value"]:
            differences.append((text, str(value(text)), str(case["value"])))
        if "milli" in case and milli_value(text) != case["milli"]:
            differences.append((text, str(milli_value(text)), str(case["milli"])))
    assert differences == []
