"""Faults in JSON, in the words of Go's scanner; more of them in data/answers.jsonl."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.wire.schema.syntax import syntax_fault


@pytest.mark.parametrize(
    "body, fault",
    [
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[}", "invalid character '}' looking for beginning of value"),
        (b"-", "unexpected end of JSON input"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1e", "unexpected end of JSON input"),
        (b"[1e]", "invalid character ']' in exponent of numeric literal"),
        (b'["\\u12"]', "invalid character '\"' in \\u hexadecimal character escape"),
        (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        (b"[\x00]", "invalid character '\\x00' looking for beginning of value"),
        (b"nul", "unexpected end of JSON input"),
    ],
)
def test_a_fault_is_told_where_it_is(body: bytes, fault: str) -> None:
    assert syntax_fault(body) == fault


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=VALUES, indent=st.sampled_from([None, 2]))
def test_what_is_json_has_no_fault(value: object, indent: int | None) -> None:
    assert syntax_fault(json.dumps(value, indent=indent).encode()) == ""


@given(value=VALUES, data=st.data())
def test_what_python_does_not_take_has_a_fault(value: object, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    broken = text[:at] + data.draw(st.sampled_from(["", *'{}[]",:x0-.\\'])) + text[at + 1 :]
    try:
        json.loads(broken)
        fine = True
    except ValueError:
        fine = False
    assert (syntax_fault(broken.encode()) == "") == fine
