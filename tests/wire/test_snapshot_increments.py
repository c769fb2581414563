"""Increments of a NodeSnapshot: applied one after another they are the whole list, whatever happened."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.agent.desired_state import DesiredState, decode_snapshot
from situate.wire.snapshot_increments import IncrementReader, IncrementWriter, MissedError

CONFIGURATIONS: list[dict[str, Any]] = [{"leaseDurationSeconds": 40}, {"leaseDurationSeconds": 15}]


def pod(number: int, version: int = 1) -> dict[str, Any]:
    uid = f"{number:08}-0000-4000-8000-000000000000"
    return {"namespace": "default", "name": f"web-{number}", "uid": uid, "bindingVersion": version}


def snapshot(version: int, pods: list[dict[str, Any]], configuration: int = 0, name: str = "n1") -> bytes:
    meta = {"name": name, "uid": f"u-{name}", "resourceVersion": str(version)}
    spec = {**({"pods": pods} if pods else {}), "configuration": CONFIGURATIONS[configuration]}  # as it is stored
    body = {"kind": "NodeSnapshot", "apiVersion": "situate.dev/v1alpha1", "metadata": meta, "spec": spec}
    return msgspec.json.encode({**body, "status": {"allocated": {"pods": str(len(pods))}}})


def read(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)["object"]
    return found


changes = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 30)),
    st.tuples(st.just("remove"), st.integers(0, 30)),
    st.tuples(st.just("resize"), st.integers(0, 30)),
    st.tuples(st.just("shuffle"), st.integers(0, 30)),
    st.tuples(st.just("configure"), st.integers(0, 1)),
    st.tuples(st.just("recreate"), st.integers(0, 30)),
    st.tuples(st.just("reconnect"), st.just(0)),
)


@given(st.lists(st.tuples(st.sampled_from(["n1", "n2"]), st.lists(changes, max_size=3)), max_size=30))
def test_increments_applied_are_the_whole_list(history: list[tuple[str, list[tuple[str, int]]]]) -> None:
    writer, reader = IncrementWriter(), IncrementReader()
    pods: dict[str, list[dict[str, Any]]] = {"n1": [], "n2": []}
    desired = {name: DesiredState() for name in pods}
    known: dict[str, bool] = {}
    configuration = 0
    for version, (name, steps) in enumerate(history, 1):
        own = pods[name]
        for step, number in steps:
            match step:
                case "add" if all(one["name"] != f"web-{number}" for one in own):
                    own.append(pod(number))
                case "remove":
                    own[:] = [one for one in own if one["name"] != f"web-{number}"]
                case "resize" if own:
                    changed = own.pop(number % len(own))
                    own.append({**changed, "hostPorts": [f"TCP/{version}"]})
                case "shuffle" if own:
                    own.insert(0, own.pop(number % len(own)))
                case "configure":
                    configuration = number
                case "recreate" if known.pop(name, False):
                    gone = snapshot(version, own, configuration, name)
                    reader.line(writer.line("DELETED", name, str(version), gone))
                    own.clear()
                case "reconnect":
                    writer, reader = IncrementWriter(), IncrementReader()
        whole = snapshot(version, own, configuration, name)
        event = "MODIFIED" if known.get(name) else "ADDED"
        known[name] = True
        sent = writer.line(event, name, str(version), whole)
        assert len(sent) <= len(whole) + len('{"type":"MODIFIED","object":}\n')
        got = reader.line(sent)
        assert json.loads(got) == {"type": event, "object": json.loads(whole)}
        held = decode_snapshot(msgspec.json.encode(read(got)))
        assert desired[name].update(held) == "newer", "versions only grow"
        assert desired[name].held == decode_snapshot(whole)


def test_one_bind_among_a_hundred_pods_is_sent_as_one_pod() -> None:
    writer, pods = IncrementWriter(), [pod(number) for number in range(100)]
    first = writer.line("ADDED", "n1", "1", snapshot(1, pods))
    bound = snapshot(2, [*pods, pod(100)])
    line = writer.line("MODIFIED", "n1", "2", bound)
    assert read(first)["kind"] == "NodeSnapshot"
    assert read(line)["kind"] == "NodeSnapshotIncrement"
    assert read(line)["spec"] == {"fromVersion": "1", "added": [pod(100)]}
    assert len(line) * 20 < len(bound)


def test_a_few_pods_of_which_all_change_are_sent_whole() -> None:
    writer = IncrementWriter()
    writer.line("ADDED", "n1", "1", snapshot(1, [pod(1)]))
    assert read(writer.line("MODIFIED", "n1", "2", snapshot(2, [pod(2)])))["kind"] == "NodeSnapshot"


@pytest.mark.parametrize("seen", [0, 1])
def test_an_increment_of_a_version_that_is_not_held_is_a_miss_and_changes_nothing(seen: int) -> None:
    writer, reader = IncrementWriter(), IncrementReader()
    lists = [[pod(number) for number in range(20 + more)] for more in range(4)]
    lines = [
        writer.line("MODIFIED" if version else "ADDED", "n1", str(version), snapshot(version, pods))
        for version, pods in enumerate(lists)
    ]
    for line in lines[:seen]:
        reader.line(line)
    with pytest.raises(MissedError, match=rf"of version 1, and {'0' if seen else 'none'} is held"):
        reader.line(lines[2])
    if seen:
        assert read(reader.line(lines[1])) == json.loads(snapshot(1, lists[1])), "what it held it still holds"


def test_bookmarks_and_errors_pass() -> None:
    for line in (
        b'{"type":"BOOKMARK","object":{"kind":"NodeSnapshot"}}\n',
        b'{"type":"ERROR","object":{"code":410}}\n',
    ):
        assert IncrementReader().line(line) == line
