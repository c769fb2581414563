"""The bodies of applies are YAML, whatever they begin with."""

import pytest

from situate.server.errors import StatusError
from situate.server.http.bodies import decode_patch


def test_yaml_may_begin_as_json_does() -> None:
    assert decode_patch(b"{a: {b: 1}}", "apply") == {"a": {"b": 1}}
    with pytest.raises(StatusError):
        decode_patch(b"{a: {b: 1}}", "merge")


def test_a_key_that_is_there_twice_is_named_with_its_line() -> None:
    with pytest.raises(StatusError) as refused:
        decode_patch(b"a: 1\nb:\n  foo: 1\n  foo: 2\n", "apply")
    assert refused.value.message.endswith('line 4: key "foo" already set in map')
