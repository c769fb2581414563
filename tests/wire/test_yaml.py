"""YAML is read as kubectl reads it, and no file can do harm."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from situate.wire.errors import InputError
from situate.wire.yaml import MAX_ALIASED_NODES, MAX_DEPTH, MAX_DOCUMENTS, load_yaml


def load(text: str | bytes) -> Any:
    (document,) = load_yaml(text.encode() if isinstance(text, str) else text)
    return document


def complaint(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        list(load_yaml(text.encode() if isinstance(text, str) else text, "f.yaml"))
    return str(caught.value)


def cases() -> list[Any]:
    """YAML, and the JSON that sigs.k8s.io/yaml v1.6.0, which kubectl uses, makes of it."""
    lines = (Path(__file__).parent / "data" / "scalars.jsonl").read_text().splitlines()
    return [pytest.param(case["yaml"], case["json"], id=case["yaml"].strip()) for case in map(json.loads, lines)]


def same(one: Any, other: Any) -> bool:
    """Equal, and 1 is not True. JSON does not tell 1.0 from 1, nor one order of keys from another."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@pytest.mark.parametrize("text, value", cases())
def test_values_are_those_that_kubectl_reads(text: str, value: Any) -> None:
    assert same(load(text), value)


def test_times_stay_text() -> None:
    assert load("startTime: 2026-07-30T12:00:00Z") == {"startTime": "2026-07-30T12:00:00Z"}


def test_documents_come_one_by_one() -> None:
    assert list(load_yaml(b"---\na: 1\n---\n---\n- b\n...\n")) == [{"a": 1}, None, ["b"]]
    assert list(load_yaml(b"")) == []
    assert list(load_yaml(b"# nothing\n")) == []


def test_documents_before_a_fault_are_still_given() -> None:
    documents = load_yaml(b"a: 1\n---\nb: [\n")
    assert next(documents) == {"a": 1}
    with pytest.raises(InputError):
        next(documents)


def test_an_alias_is_what_its_anchor_is() -> None:
    assert load("a: &x {k: [1, 2]}\nb: *x\n") == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}}
    assert load("a: &x web\nb: *x\n") == {"a": "web", "b": "web"}


def test_merged_keys_give_way_to_those_after_them() -> None:
    text = "base: &b {a: 1, c: 3}\nmore: &m {c: 5, d: 4}\nuse: {e: 0, <<: [*b, *m], a: 9}\n"
    assert load(text)["use"] == {"e": 0, "a": 9, "c": 3, "d": 4}
    assert load('{"<<": 1}') == {"<<": 1}
    assert "given twice" in complaint("b: &b {a: 1}\nuse: {<<: *b, a: 2, a: 3}")
    assert "given twice" in complaint("b: &b {a: 1}\nuse: {a: 2, <<: *b, a: 3}")


@pytest.mark.parametrize(
    "text, says",
    [
        pytest.param("a: [1\n", "f.yaml: line 2, column 1: not YAML: did not find expected ',' or ']'", id="no end"),
        pytest.param("a:\n\tb: 1\n", "f.yaml: line 2, column 1: not YAML: found character that cannot", id="a tab"),
        pytest.param("a: 1\na: 2\n", 'f.yaml: line 2, column 1: key "a" is given twice', id="a key given twice"),
        pytest.param("1: a\n'1': b\n", 'f.yaml: line 2, column 1: key "1" is given twice', id="as number and text"),
        pytest.param(
            "? [a]\n: b\n", "f.yaml: line 1, column 3: a mapping has a key that is not text", id="a list as key"
        ),
        pytest.param("~: b\n", "f.yaml: line 1, column 1: a mapping has a key that is not text", id="null as key"),
        pytest.param("a: *b\n", 'f.yaml: line 1, column 4: alias "b" has no anchor', id="an alias of nothing"),
        pytest.param(
            "&x a: 1\n*x : 2\n", "f.yaml: line 2, column 1: a mapping has an alias for a key", id="an alias as key"
        ),
        pytest.param("a: &a [*a]\n", 'f.yaml: line 1, column 8: alias "a" is inside its own anchor', id="recursion"),
        pytest.param("&a {b: {c: *a}}\n", 'alias "a" is inside its own anchor', id="deeper recursion"),
        pytest.param("<<: 5\n", "only mappings can be merged with <<", id="a merge of a number"),
        pytest.param("a: !!python/object:os.system x\n", "cannot have the tag tag:yaml.org,2002:python/", id="a tag"),
        pytest.param("a: !mine {b: 1}\n", "tag !mine is not supported", id="a tagged mapping"),
        pytest.param("a: !!int abc\n", '"abc" cannot have the tag tag:yaml.org,2002:int', id="a word tagged a number"),
        pytest.param("a: .inf\n", ".inf is not a number that JSON has", id="infinity"),
        pytest.param("a: .nan\n", ".nan is not a number that JSON has", id="not a number"),
        pytest.param("a: b: c\n", "not YAML: mapping values are not allowed in this context", id="two colons"),
        pytest.param(b"a: \xff\n", "f.yaml: not YAML: unacceptable character", id="not UTF-8"),
        pytest.param(b"\x00\x01\x02", "f.yaml: not YAML: unacceptable character", id="not text"),
    ],
)
def test_what_is_not_yaml_is_said_with_its_place(text: str | bytes, says: str) -> None:
    assert says in complaint(text)


def bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines)


DEEP = f"nested deeper than {MAX_DEPTH} levels"
BOMBS = [
    pytest.param("[" * 100_000, DEEP, id="100 kB of brackets"),
    pytest.param("{a: " * 100_000, DEEP, id="400 kB of braces"),
    pytest.param("- " * 100_000, DEEP, id="200 kB of dashes"),
    pytest.param("a:\n" + "".join(f"{' ' * n}a:\n" for n in range(1, 300)), DEEP, id="300 mappings in each other"),
    pytest.param("? " * 100_000, "a key that is not text", id="200 kB of question marks"),
    pytest.param(bomb(10, 10), f"aliases stand for more than {MAX_ALIASED_NODES} nodes", id="a billion laughs"),
    pytest.param(bomb(60, 2), f"aliases stand for more than {MAX_ALIASED_NODES} nodes", id="2^60 laughs"),
    pytest.param(bomb(300, 1), DEEP, id="aliases that nest deeper and deeper"),
    pytest.param("a: &a {b: *a}", "inside its own anchor", id="a mapping in itself"),
    pytest.param("---\n" * (MAX_DOCUMENTS + 2), f"more than {MAX_DOCUMENTS} documents", id="too many documents"),
    pytest.param("a: " + "!" * 1_000_000, "cannot have the tag", id="a megabyte of tag"),
    pytest.param(":" * 1_000_000, "not YAML", id="a megabyte of colons"),
]


@pytest.mark.parametrize("text, says", BOMBS)
def test_a_bomb_is_refused_at_once(text: str, says: str) -> None:
    began = time.process_time()
    assert says in complaint(text)
    assert time.process_time() - began < 1


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_depth_is_bounded_exactly() -> None:
    load(nested(MAX_DEPTH))
    assert DEEP in complaint(nested(MAX_DEPTH + 1))
    half = MAX_DEPTH // 2
    load(f"a: &a {nested(half)}\nb: {'[' * (half - 1)}*a{']' * (half - 1)}")
    assert DEEP in complaint(f"a: &a {nested(half)}\nb: {'[' * half}*a{']' * half}")


def test_aliases_are_bounded_by_what_they_stand_for() -> None:
    anchor = f"[&a [{','.join('x' * 999)}]"  # 1,000 nodes
    times = MAX_ALIASED_NODES // 1000
    load(anchor + ",*a" * times + "]")
    assert "aliases stand for more than" in complaint(anchor + ",*a" * (times + 1) + "]")


def test_a_file_that_is_too_large_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.wire.yaml.MAX_BYTES", 10)
    assert load("a: 1234567") == {"a": 1234567}
    assert complaint("a: 12345678") == "f.yaml: larger than 10 bytes"


keys = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | keys,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_json_can_say_is_read_back(value: Any) -> None:
    # Only characters as they are: YAML has no surrogate pairs.
    assert load(json.dumps(value, ensure_ascii=False)) == value


@given(values)
def test_what_a_dumper_writes_is_read_back(value: Any) -> None:
    # All scalars quoted, with tags where they are not text: bare words are not the same to the dumper and to kubectl.
    assert load(yaml.safe_dump(value, allow_unicode=True, default_style='"')) == value


def values_or_complaint(data: bytes) -> list[Any] | str:
    try:
        return list(load_yaml(data, "f"))
    except InputError as error:
        return str(error)


@given(st.one_of(st.text(max_size=60), st.text("[]{}:,&*a-? \n|>'\"#!<~1.", max_size=60)))
def test_any_text_is_values_or_one_error(text: str) -> None:
    read = values_or_complaint(text.encode("utf-8", "surrogatepass"))
    if isinstance(read, str):
        assert read.startswith("f: ")
    else:
        json.dumps(read, allow_nan=False)


@given(st.binary(max_size=60))
def test_any_bytes_are_values_or_one_line(data: bytes) -> None:
    read = values_or_complaint(data)
    assert isinstance(read, list) or len(read.splitlines()) == 1
