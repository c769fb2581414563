"""The headers of HTTP/2: what we send can be read again, and the RFC's own examples can."""

import pytest

from situate.store.etcd.hpack import HeaderError, decode, encode


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 255, 300, 20_000])
def test_what_is_sent_can_be_read_again(length: int) -> None:
    headers = {"grpc-status": "5", "grpc-message": "m" * length}
    assert decode(encode(headers.items())) == headers


def test_a_request_has_literals_and_the_static_table_only() -> None:
    made = encode(
        [(":method", "POST"), (":scheme", "http"), (":path", "/a"), ("content-type", "x"), ("te", "trailers")]
    )
    assert made == b"\x83\x86\x04\x02/a\x0f\x10\x01x\x00\x02te\x08trailers"


def test_compressed_texts_are_read() -> None:
    """RFC 7541, C.6.1: a response with compressed values. Its other headers are of the static table."""
    block = bytes.fromhex(
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3"
    )
    assert decode(block) == {":status": "302"}
    compressed = bytes.fromhex("0088 25a849e95ba97d7f 8925a849e95bb8e8b4bf".replace(" ", ""))
    assert decode(compressed) == {"custom-key": "custom-value"}, "C.4.3, but not to be kept"


def test_codes_of_every_length_are_those_of_the_rfc() -> None:
    codes = {
        " ": "010100",
        "%": "010101",
        "0": "00000",
        "a": "00011",
        "z": "1111011",
        "~": "1111111111101",
        "\\": "1" * 15 + "0000",
    }
    for character, code in codes.items():
        padded = code + "1" * (-len(code) % 8)
        text = int(padded, 2).to_bytes(len(padded) // 8, "big")
        assert decode(b"\x00\x01m" + bytes((0x80 | len(text),)) + text) == {"m": character}


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"\xbe", id="an earlier header"),
        pytest.param(b"\x0f\x2f\x01x", id="an earlier name"),
        pytest.param(b"\x00\x05ab", id="a name that is cut off"),
        pytest.param(b"\x00", id="nothing after the kind"),
        pytest.param(b"\x00\x01m\x81\x00", id="padding with other bits"),
        pytest.param(b"\xff\xff", id="a number that does not end"),
    ],
)
def test_what_cannot_be_read_is_an_error(block: bytes) -> None:
    with pytest.raises(HeaderError):
        decode(block)


def test_a_change_of_the_tables_size_is_no_header() -> None:
    assert decode(b"\x20\x88") == {":status": "200"}
