"""The forms of words for mistakes in fields, and the grammar of names, addresses and amounts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.model.quantity import parse_milli, parse_quantity
from situate.server.kinds.addresses import cidr, ip
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import config_key, dns_1035_label, dns_label, env_name, path_segment, subdomain
from situate.server.kinds.quantities import rounded, written


@pytest.mark.parametrize(
    "name,arguments,message,reason",
    [
        ("required", ("f",), "Required value", "FieldValueRequired"),
        (
            "required",
            (
                "f",
                "why",
            ),
            "Required value: why",
            "FieldValueRequired",
        ),
        (
            "invalid",
            (
                "f",
                "x",
                "must be y",
            ),
            'Invalid value: "x": must be y',
            "FieldValueInvalid",
        ),
        (
            "invalid",
            (
                "f",
                'a"\n\x01ä',
                "no",
            ),
            'Invalid value: "a\\"\\n\\x01ä": no',
            "FieldValueInvalid",
        ),
        (
            "invalid",
            (
                "f",
                5,
                "no",
            ),
            "Invalid value: 5: no",
            "FieldValueInvalid",
        ),
        (
            "invalid",
            (
                "f",
                True,
                "no",
            ),
            "Invalid value: true: no",
            "FieldValueInvalid",
        ),
        (
            "invalid",
            (
                "f",
                None,
                "no",
            ),
            "Invalid value: null: no",
            "FieldValueInvalid",
        ),
        (
            "invalid",
            (
                "f",
                {"a": ["<"]},
                "no",
            ),
            'Invalid value: {"a":["\\u003c"]}: no',
            "FieldValueInvalid",
        ),
        (
            "not_supported",
            ("f", "x", ("a", "b")),
            'Unsupported value: "x": supported values: "a", "b"',
            "FieldValueNotSupported",
        ),
        ("not_supported", ("f", "x", ()), 'Unsupported value: "x"', "FieldValueNotSupported"),
        (
            "forbidden",
            (
                "f",
                "why",
            ),
            "Forbidden: why",
            "FieldValueForbidden",
        ),
        (
            "duplicate",
            (
                "f",
                "x",
            ),
            'Duplicate value: "x"',
            "FieldValueDuplicate",
        ),
        (
            "not_found",
            (
                "f",
                "x",
            ),
            'Not found: "x"',
            "FieldValueNotFound",
        ),
        (
            "too_long",
            (
                "f",
                63,
            ),
            "Too long: may not be more than 63 bytes",
            "FieldValueTooLong",
        ),
        (
            "too_many",
            (
                "f",
                5,
                1,
            ),
            "Too many: 5: must have at most 1 item",
            "FieldValueTooMany",
        ),
    ],
)
def test_each_mistake_has_the_words_of_the_api_server(
    name: str, arguments: tuple[object, ...], message: str, reason: str
) -> None:
    causes = Causes()
    getattr(causes, name)(*arguments)
    (cause,) = causes
    assert (cause.field, cause.message, cause.reason) == ("f", message, reason)


@given(st.text(st.sampled_from("ab1-._A/ %ä\n"), max_size=70))
@settings(max_examples=300, deadline=None)
def test_a_narrower_grammar_of_names_allows_nothing_that_a_wider_one_refuses(text: str) -> None:
    if not dns_1035_label(text):
        assert not dns_label(text)
    if not dns_label(text):
        assert not subdomain(text)
    if not subdomain(text):
        assert not config_key(text)
        assert not env_name(text)
        assert not path_segment(text)


def test_a_name_that_is_far_too_long_is_refused() -> None:
    assert dns_label("a" * 100_000) == ("must be no more than 63 characters",)
    assert subdomain("a" * 100_000) == ("must be no more than 253 characters",)


@pytest.mark.parametrize("rule", [subdomain, dns_label, dns_1035_label])
def test_a_line_feed_at_the_end_is_part_of_a_name(rule: object) -> None:
    assert callable(rule)
    assert rule("a") == ()
    assert rule("a\n") != ()


@pytest.mark.parametrize(
    "text,problem",
    [
        ("10.0.0.1", ""),
        ("fe80::1", ""),
        ("2001:DB8::1", ""),
        ("10.0.0.256", "must be a valid IP address"),
        ("010.0.0.1", "must not have leading 0s"),
        ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
        ("fe80::1%eth0", "must be a valid IP address"),
        ("1.2.3.4\n", "must be a valid IP address"),
        ("", "must be a valid IP address"),
    ],
)
def test_addresses(text: str, problem: str) -> None:
    causes = Causes()
    ip(text, "f", causes)
    assert [problem in one.message for one in causes] == ([True] if problem else [])
    again = Causes()
    ip(text, "f", again, known=[text])
    assert again == []


@pytest.mark.parametrize(
    "text,problem",
    [
        ("10.0.0.0/8", ""),
        ("fd00::/64", ""),
        ("10.0.0.0", "must be a valid CIDR value"),
        ("10.0.0.0/33", "must be a valid CIDR value"),
        ("10.0.0.0/+8", "must be a valid CIDR value"),
        ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
        ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
    ],
)
def test_networks(text: str, problem: str) -> None:
    causes = Causes()
    cidr(text, "f", causes)
    assert [problem in one.message for one in causes] == ([True] if problem else [])


@given(st.integers(0, 10**21))
@settings(max_examples=200, deadline=None)
def test_amounts_are_rounded_up_to_thousandths_and_written_exactly(nanos: int) -> None:
    kept = rounded(f"{nanos}n")
    assert parse_quantity(kept) == parse_milli(f"{nanos}n") * 10**6
    assert parse_quantity(written(nanos, binary=False)) == parse_milli(f"{nanos}n") * 10**6


@pytest.mark.parametrize(
    "units,text", [(0, "0"), (1, "1"), (1023, "1023"), (1024, "1Ki"), (3 * 2**30, "3Gi"), (1536, "1536")]
)
def test_bytes_are_written_in_powers_of_1024(units: int, text: str) -> None:
    assert written(units * 10**9, binary=True) == text
