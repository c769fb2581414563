"""Quantities, times and bytes, as Go writes them back."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.quantity import parse_milli, parse_quantity
from situate.wire.schema.values import (
    ValueRefusedError,
    base64_text,
    canonical_amount,
    canonical_quantity,
    micro_time_text,
    time_text,
)

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "data" / "quantities.jsonl").read_text().splitlines()]


# Capacities of a node that was posted to a kube-apiserver v1.36.4, and what came back.
@pytest.mark.parametrize("case", [pytest.param(one, id=repr(one["quantity"])) for one in RECORDED])
def test_an_amount_is_written_as_kube_apiserver_writes_it(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(ValueRefusedError) as refused:
            canonical_amount(case["quantity"])
        assert str(refused.value) == case["refused"]
    else:
        assert canonical_amount(case["quantity"]) == case["written"]


TEXTS = st.from_regex(
    r"[+-]?([0-9]{1,12}(\.[0-9]{0,6})?|\.[0-9]{1,6})(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9])", fullmatch=True
)


@given(text=TEXTS)
def test_a_quantity_is_worth_the_same_as_it_is_written(text: str) -> None:
    written = canonical_quantity(text)
    assert parse_quantity(written) == parse_quantity(text)
    assert canonical_quantity(written) == written


@given(text=TEXTS)
def test_an_amount_is_rounded_up_to_thousandths(text: str) -> None:
    written = canonical_amount(text)
    assert parse_quantity(written) == parse_milli(text) * 1_000_000
    assert canonical_amount(written) == written


def test_more_than_the_largest_suffix_is_not_lost() -> None:
    assert canonical_quantity("1000E") == "1000E"


@pytest.mark.parametrize(
    "text, written",
    [
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05.999999999Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05+02:00", "2024-01-02T01:04:05Z"),
        ("2024-12-31T23:59:59-11:30", "2025-01-01T11:29:59Z"),
        ("0987-01-02T3:04:05Z", "0987-01-02T03:04:05Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_a_time_is_in_seconds_of_utc(text: str, written: str | None) -> None:
    assert time_text(text) == written


@pytest.mark.parametrize(
    "text, why",
    [
        ("2024-01-02T03:04:60Z", 'parsing time "2024-01-02T03:04:60Z": second out of range'),
        ("2024-01-02T03:04:05Zx", 'parsing time "2024-01-02T03:04:05Zx": extra text: "x"'),
        ("2024-01-02T03:04:05+25:00", 'parsing time "2024-01-02T03:04:05+25:00": time zone offset hour out of range'),
        ("0001-01-01T00:00:00+10:00", 'parsing time "0001-01-01T00:00:00+10:00": day out of range'),
        (
            "2024-1-02T03:04:05Z",
            'parsing time "2024-1-02T03:04:05Z" as "2006-01-02T15:04:05Z07:00": cannot parse "1-02T03:04:05Z" as "01"',
        ),
    ],
)
def test_what_is_no_time_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueRefusedError) as refused:
        time_text(text)
    assert str(refused.value) == why


def test_a_micro_time_has_six_digits() -> None:
    assert micro_time_text("2024-01-02T03:04:05.123456+01:00") == "2024-01-02T02:04:05.123456Z"
    with pytest.raises(ValueRefusedError, match=r'cannot parse "7Z" as "Z07:00"'):
        micro_time_text("2024-01-02T03:04:05.1234567Z")


@given(data=st.binary(max_size=40))
def test_bytes_survive(data: bytes) -> None:
    from base64 import b64encode

    text = b64encode(data).decode()
    assert base64_text(text) == text
    assert base64_text("\r\n".join(text)) == text


@pytest.mark.parametrize(
    "text, at", [("b", 0), ("@@@@", 0), ("Yg=", 3), ("Yg==Yg==", 4), ("YWJjYQ", 4), ("YW=j", 2), ("Y===", 1)]
)
def test_base64_is_refused_where_it_ends_to_be_such(text: str, at: int) -> None:
    with pytest.raises(ValueRefusedError, match=f"illegal base64 data at input byte {at}$"):
        base64_text(text)
