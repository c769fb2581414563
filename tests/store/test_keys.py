"""Where prefixes end, and that text and its bytes have one order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.store.errors import InvalidRequestError
from situate.store.keys import MAX_KEY_BYTES, check_key, first_after, prefix_end

# Few characters, and those next to gaps, so that prefixes of each other are common.
texts = st.text(st.sampled_from("a/b\x7f\u0080\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=4)


@given(prefix=texts, other=texts)
def test_what_begins_with_a_prefix_is_what_lies_before_its_end(prefix: str, other: str) -> None:
    end = prefix_end(prefix)
    assert other.startswith(prefix) == (prefix <= other and (end is None or other < end))


@given(one=texts, other=texts)
def test_text_and_its_bytes_have_one_order(one: str, other: str) -> None:
    assert (one < other) == (one.encode() < other.encode())


@given(one=texts, other=texts)
def test_nothing_lies_between_a_key_and_the_first_after_it(one: str, other: str) -> None:
    assert (other > one) == (other >= first_after(one))


def test_a_key_has_a_longest() -> None:
    check_key("k" * MAX_KEY_BYTES)
    with pytest.raises(InvalidRequestError, match="at most"):
        check_key("k" * (MAX_KEY_BYTES + 1))
