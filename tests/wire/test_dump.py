"""What is written is read back as the same values, by our own reader and by one of YAML 1.1."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.wire.dump import dump_json, dump_yaml
from situate.wire.yaml import load_yaml

# What YAML cannot hold as it is, it escapes; surrogates no text can hold.
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from("on off y n yes no null ~ 1 0x1f 1e3 1_000 .5 .nan 2025-01-01 -".split()),
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), texts)
values = st.dictionaries(
    texts,
    st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8),
    max_size=4,
)


@settings(max_examples=200)
@given(values)
def test_yaml_is_read_back_as_it_was(given_values: dict[str, object]) -> None:
    text = dump_yaml(given_values)
    assert list(load_yaml(text.encode())) == [given_values]
    assert yaml.safe_load(text) == given_values


@settings(max_examples=50)
@given(values)
def test_json_is_read_back_as_it_was(given_values: dict[str, object]) -> None:
    assert json.loads(dump_json(given_values)) == given_values


@pytest.mark.parametrize("text", ["on", "y", "1e3", "1_000", "null", "", "0644"])
def test_text_that_looks_like_something_else_is_in_double_quotes(text: str) -> None:
    assert dump_yaml({"a": text}) == f'a: "{text}"\n'


def test_keys_stand_in_the_order_given_or_sorted() -> None:
    assert dump_yaml({"b": 1, "a": 2}) == "b: 1\na: 2\n"
    assert dump_yaml({"b": 1, "a": 2}, sort_keys=True) == "a: 2\nb: 1\n"


def test_what_is_there_twice_is_written_twice() -> None:
    shared = ["x"]
    assert dump_yaml({"a": shared, "b": shared}) == "a:\n- x\nb:\n- x\n"


def test_long_text_stays_on_its_line() -> None:
    assert dump_yaml({"a": "word " * 100 + "end"}).count("\n") == 1
