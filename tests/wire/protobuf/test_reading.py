"""Bodies in protobuf: as kubectl v1.36 sends them, and as Go writes objects of all kinds."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.wire.protobuf import MAGIC, from_protobuf
from situate.wire.schema import DecodeError, decode

# What commands of kubectl sent, with the object that it is: a kube-apiserver that was sent that one, as JSON, made the
# same of it as of the body itself.
KUBECTL = [json.loads(line) for line in (Path(__file__).parent / "data" / "kubectl.jsonl").read_text().splitlines()]
WRITTEN_BY_GO = [
    one
    for line in (Path(__file__).parent.parent / "schema" / "data" / "written_by_go.jsonl").read_text().splitlines()
    if "protobuf" in (one := json.loads(line))
]


@pytest.mark.parametrize("case", [pytest.param(one, id=f"kubectl {one['command']}") for one in KUBECTL])
def test_what_kubectl_sends_is_the_object_it_means(case: dict[str, Any]) -> None:
    assert from_protobuf(bytes.fromhex(case["body"])) == case["object"]


def without_types_inside(value: dict[str, Any]) -> dict[str, Any]:
    """Protobuf does not carry the kinds of objects in objects."""
    for claim in value.get("spec", {}).get("volumeClaimTemplates", []):
        claim.pop("kind", None)
        claim.pop("apiVersion", None)
    for name in ("kind", "apiVersion"):
        value.get("deleteOptions", {}).pop(name, None)
    return value


@pytest.mark.parametrize("case", [pytest.param(one, id=f"{one['kind']} {n}") for n, one in enumerate(WRITTEN_BY_GO)])
def test_an_object_is_the_same_in_protobuf_and_in_json(case: dict[str, Any]) -> None:
    in_json = decode(case["apiVersion"], case["kind"], case["body"].encode()).object
    assert from_protobuf(bytes.fromhex(case["protobuf"])) == without_types_inside(in_json)


@pytest.mark.parametrize(
    "body, why",
    [
        pytest.param(b"", "does not appear to be a protobuf message", id="nothing"),
        pytest.param(b'{"kind":"Pod"}', "does not appear to be a protobuf message", id="JSON"),
        pytest.param(MAGIC, 'no kind "" is registered', id="an envelope of nothing"),
        pytest.param(MAGIC + b"\xff" * 20, "proto: ", id="an envelope that is none"),
        pytest.param(MAGIC + b"\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x01\xff", "proto: ", id="an object that is none"),
        pytest.param(
            MAGIC + b"\x0a\x24\x0a\x14situate.dev/v1alpha1\x12\x0cNodeSnapshot",
            'no kind "NodeSnapshot" is registered',
            id="a kind that is JSON only",
        ),
    ],
)
def test_what_is_no_object_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        from_protobuf(body)


@settings(max_examples=200, deadline=None)
@given(index=st.integers(0, len(KUBECTL) - 1), at=st.integers(0, 400), with_byte=st.integers(0, 255))
def test_a_spoilt_body_is_an_object_or_refused_and_nothing_else(index: int, at: int, with_byte: int) -> None:
    body = bytearray.fromhex(KUBECTL[index]["body"])
    body[at % len(body)] = with_byte
    try:
        found = from_protobuf(bytes(body))
    except DecodeError:
        return
    assert {"kind", "apiVersion"} <= set(found)


@settings(max_examples=200, deadline=None)
@given(tail=st.binary(max_size=60))
def test_any_bytes_are_an_object_or_refused_and_nothing_else(tail: bytes) -> None:
    head = b"\x0a\x09\x0a\x02v1\x12\x03Pod"
    try:
        found = from_protobuf(MAGIC + head + b"\x12" + bytes([len(tail)]) + tail)
    except DecodeError:
        return
    assert found["kind"] == "Pod"
