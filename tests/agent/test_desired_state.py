"""What a node is to run, in versions that never go back."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.agent.desired_state import DesiredState, NodeConfiguration, Snapshot, decode_snapshot


def test_a_snapshot_is_read_as_a_server_shows_it() -> None:
    body = {
        "apiVersion": "situate.dev/v1alpha1",
        "metadata": {"name": "n", "resourceVersion": "17"},
        "spec": {
            "pods": [{"namespace": "d", "name": "p", "uid": "u", "bindingVersion": 3}],
            "configuration": {"profile": "fast", "leaseDurationSeconds": 15, "renewIntervalSeconds": 5},
        },
        "status": {"allocated": {"pods": "1"}},
    }
    assert decode_snapshot(json.dumps(body).encode()) == Snapshot(17, {"u": 3}, NodeConfiguration(15, 5))


@pytest.mark.parametrize("seconds", [(0, 0), (-5, 10), (40, 0)])
def test_a_configuration_with_which_no_lease_can_be_kept_is_not_used(seconds: tuple[int, int]) -> None:
    wanted = {"leaseDurationSeconds": seconds[0], "renewIntervalSeconds": seconds[1]}
    body = {"metadata": {"resourceVersion": "17"}, "spec": {"configuration": wanted}}
    assert decode_snapshot(json.dumps(body).encode()).configuration == NodeConfiguration()


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'{"metadata":{"resourceVersion":7}}', b"[]"])
def test_what_is_no_snapshot_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_snapshot(body)


@given(st.lists(st.integers(1, 9)))
def test_versions_only_grow_whatever_is_told(versions: list[int]) -> None:
    wanted, taken = DesiredState(), []
    assert wanted.version == 0, "less than any"
    for version in versions:
        if wanted.update(Snapshot(version, {"u": version})) == "newer":
            taken.append(version)
        assert wanted.version == max(taken)
        assert wanted.binding("u") == wanted.version
    assert taken == sorted(set(taken))


def test_a_binding_does_not_go_back_either() -> None:
    wanted = DesiredState(Snapshot(5, {"u": 2}))
    assert wanted.update(Snapshot(6, {"u": 1})) == "older"
    assert wanted.version == 5
