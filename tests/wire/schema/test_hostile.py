"""Bodies that are meant to do harm: each is refused with words, soon, and by no other error."""

import pytest

from situate.wire.schema import DecodeError, decode, duplicate_fields
from situate.wire.schema.slow_decoder import MAX_PROBLEMS
from situate.wire.schema.values import MAX_DEPTH

MIB = 1024 * 1024


def pod(fields: bytes, spec: bytes = b"") -> bytes:
    return b'{"apiVersion":"v1","kind":"Pod","metadata":{"managedFields":[{"fieldsV1":%b}]},"spec":{%b}}' % (
        fields,
        spec,
    )


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize(
    "body, why",
    [
        pytest.param(b"[" * (3 * MIB), "invalid character '[' exceeded max depth", id="three MiB of brackets"),
        pytest.param(nested(100_000), "invalid character '{' exceeded max depth", id="a hundred thousand objects deep"),
        pytest.param(b"[" * 5_000 + b"]" * 5_000, "exceeded max depth", id="deeper than Python, not than Go"),
        pytest.param(pod(nested(100_000)), "invalid character '{' exceeded max depth", id="deep where all is allowed"),
        pytest.param(pod(nested(MAX_DEPTH + 1)), "exceeded max depth", id="one too deep where all is allowed"),
        pytest.param(pod(b"{}", b'"x":' + nested(100_000)), "exceeded max depth", id="deep in an unknown field"),
        pytest.param(pod(b"{}", b'"priority":NaN'), "invalid character 'N' looking for beginning of value", id="NaN"),
        pytest.param(pod(b"{}", b'"priority":-Infinity'), "invalid character 'I' in numeric literal", id="infinity"),
        pytest.param(
            pod(b"{}", b'"priority":1e400'), "cannot unmarshal number 1e400 into", id="a number past all floats"
        ),
        pytest.param(pod(b"{}", b'"priority":' + b"9" * MIB), "cannot unmarshal number 999", id="a MiB of digits"),
        pytest.param(pod(b'{"a":1e400}'), "number out of range", id="a number past all floats, where all is allowed"),
        pytest.param(
            pod(b'{"a":%b}' % (b"9" * MIB)), "number out of range", id="a MiB of digits, where all is allowed"
        ),
        pytest.param(pod(b'{"a":99999999999999999999}'), "number out of range", id="past int64, where all is allowed"),
        pytest.param(
            pod(b"{}", b'"overhead":{"cpu":%b}' % (b"9" * MIB)), "no more than 64 characters", id="a long quantity"
        ),
        pytest.param(
            pod(b"{}", b'"overhead":{"cpu":"1e999999999"}'), "exponent must be between", id="a large exponent"
        ),
        pytest.param(pod(b"{}", b'"nodeName":"\\ud800"'), "half of a surrogate pair", id="half of a surrogate pair"),
        pytest.param(pod(b'{"\\udc00":1}'), "half of a surrogate pair", id="the other half, in a name"),
        pytest.param(pod(b"{}", b'"nodeName":"\xff"'), "not UTF-8", id="bytes that are no text"),
        pytest.param('{"a":1}'.encode("utf-16"), "invalid character 'ÿ'", id="UTF-16"),
        pytest.param(b'"' + b"\\" * (3 * MIB), "unexpected end of JSON input", id="three MiB of backslashes"),
        pytest.param(b" " * (3 * MIB), "unexpected end of JSON input", id="three MiB of nothing"),
        pytest.param(b"[" + b"1," * 1_000_000 + b"x", "Expecting value", id="a fault after a million values"),
    ],
)
def test_a_body_is_refused_with_a_short_text(body: bytes, why: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decode("v1", "Pod", body)
    assert why in str(refused.value)
    assert len(str(refused.value)) < 1_500


def test_what_is_free_in_form_may_be_as_deep_as_the_limit() -> None:
    body = pod(nested(MAX_DEPTH - 1))
    assert decode("v1", "Pod", body).problems == ()


def test_of_many_problems_some_are_told() -> None:
    body = pod(b"{}", b",".join(b'"x%d":1' % number for number in range(10_000)))
    assert len(decode("v1", "Pod", body).problems) == MAX_PROBLEMS


def test_of_a_long_name_the_start_is_told() -> None:
    (problem,) = decode("v1", "Pod", pod(b"{}", b'"%b":1' % (b"x" * MIB))).problems
    assert len(problem) < 1_000


def test_the_same_field_a_thousand_times_is_one_problem() -> None:
    body = pod(b"{}", b",".join([b'"priority":1'] * 1_000))
    assert decode("v1", "Pod", body).problems == ('duplicate field "spec.priority"',)
    assert duplicate_fields(body) == ('duplicate field "spec.priority"',)


def test_a_list_of_nulls_is_a_list_of_empty_objects() -> None:
    spec = decode("v1", "Pod", pod(b"{}", b'"containers":[%b]' % b",".join([b"null"] * 1_000))).object["spec"]
    assert spec["containers"] == [{"name": "", "resources": {}}] * 1_000
    spec["containers"][0]["name"] = "a"
    assert spec["containers"][1]["name"] == ""
