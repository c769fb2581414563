"""How much a ConfigMap or a Secret may hold, and what is locked in it."""

import base64
from typing import Any

import pytest

from server.kinds.checking import found_by
from situate.server.kinds.core import configmap
from situate.server.kinds.core import secret as secrets
from situate.server.kinds.core.configmap import MAX_SIZE, decoded_size

Json = dict[str, Any]


def encoded(size: int) -> str:
    return base64.b64encode(b"x" * size).decode()


@pytest.mark.parametrize("size", range(9))
def test_the_size_of_what_is_encoded_is_known_without_decoding(size: int) -> None:
    assert decoded_size(encoded(size)) == size


def test_a_config_map_holds_a_mebibyte_of_both_kinds_together() -> None:
    half = MAX_SIZE // 2
    full: Json = {"metadata": {}, "data": {"a": "x" * half}, "binaryData": {"b": encoded(half)}}
    assert found_by(configmap.KIND.strategy.validate, full) == []
    full["data"]["a"] += "x"
    (cause,) = found_by(configmap.KIND.strategy.validate, full)
    assert (cause.field, cause.message) == ("", "Too long: may not be more than 1048576 bytes")


def test_a_secret_holds_a_mebibyte() -> None:
    full: Json = {"metadata": {}, "type": "Opaque", "data": {"a": encoded(MAX_SIZE)}}
    assert found_by(secrets.KIND.strategy.validate, full) == []
    full["data"]["b"] = encoded(1)
    (cause,) = found_by(secrets.KIND.strategy.validate, full)
    assert (cause.field, cause.message) == ("data", "Too long: may not be more than 1048576 bytes")


def test_text_in_a_secret_becomes_data_and_wins() -> None:
    secret: Json = {"metadata": {}, "data": {"a": encoded(1), "b": encoded(2)}, "stringData": {"a": "ä"}}
    secrets.KIND.strategy.default(secret)
    assert "stringData" not in secret
    assert base64.b64decode(secret["data"]["a"]).decode() == "ä"
    assert secret["data"]["b"] == encoded(2)
