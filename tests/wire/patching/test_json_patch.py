"""JSON patch, and its limits."""

from typing import Any

import pytest

from situate.wire.patching import MAX_OPERATIONS, PatchError, json_patched

POD: dict[str, Any] = {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "x"}, {"name": "y"}]}}


@pytest.mark.parametrize(
    "operation, path, value",
    [
        pytest.param(
            {"op": "add", "path": "/metadata/labels/b", "value": "2"}, ("labels", "b"), "2", id="a field is added"
        ),
        pytest.param(
            {"op": "replace", "path": "/metadata/labels/a", "value": "2"}, ("labels", "a"), "2", id="replaced"
        ),
        pytest.param(
            {"op": "replace", "path": "/metadata/labels/b", "value": "2"},
            ("labels", "b"),
            "2",
            id="a field that is not there can be replaced, as on an API server",
        ),
        pytest.param(
            {"op": "copy", "from": "/spec/containers/0/name", "path": "/metadata/labels/c"},
            ("labels", "c"),
            "x",
            id="copied",
        ),
        pytest.param(
            {"op": "test", "path": "/metadata/labels/a", "value": "1"}, ("labels", "a"), "1", id="a test holds"
        ),
        pytest.param(
            {"op": "test", "path": "/metadata/labels/b", "value": None},
            ("labels", "a"),
            "1",
            id="a field that is not there is equal to null",
        ),
    ],
)
def test_an_operation_is_carried_out(operation: dict[str, Any], path: tuple[str, str], value: str) -> None:
    assert json_patched(POD, [operation])["metadata"][path[0]][path[1]] == value


def test_an_item_is_put_into_a_list_and_another_moved() -> None:
    operations = [
        {"op": "add", "path": "/spec/containers/-", "value": {"name": "z"}},
        {"op": "move", "from": "/spec/containers/0", "path": "/spec/containers/1"},
    ]
    names = [one["name"] for one in json_patched(POD, operations)["spec"]["containers"]]
    assert names == ["y", "x", "z"]


def test_neither_the_target_nor_the_patch_is_changed() -> None:
    value: dict[str, Any] = {}
    json_patched(POD, [{"op": "add", "path": "/new", "value": value}, {"op": "add", "path": "/new/a", "value": 1}])
    assert value == {}
    assert "new" not in POD


@pytest.mark.parametrize(
    "operations, status",
    [
        pytest.param({"op": "add"}, 400, id="a patch that is no list"),
        pytest.param(["add"], 400, id="an operation that is no object"),
        pytest.param([{"op": "explode", "path": "/a"}], 422, id="an unknown operation"),
        pytest.param([{"path": "/a"}], 422, id="an operation without a name"),
        pytest.param([{"op": "add", "path": "/a"}], 422, id="no value"),
        pytest.param([{"op": "add", "path": 5, "value": 1}], 422, id="a path that is no string"),
        pytest.param([{"op": "add", "path": "a", "value": 1}], 422, id="a path without a slash"),
        pytest.param([{"op": "remove", "path": "/metadata/labels/b"}], 422, id="removing what is not there"),
        pytest.param(
            [{"op": "replace", "path": "/no/where", "value": 1}], 422, id="replacing inside what is not there"
        ),
        pytest.param(
            [{"op": "replace", "path": "/spec/containers/7", "value": 1}], 422, id="replacing past a list's end"
        ),
        pytest.param([{"op": "remove", "path": "/spec/containers/-"}], 422, id="removing past a list's end"),
        pytest.param([{"op": "copy", "from": 1, "path": "/a"}], 422, id="copying from a number"),
        pytest.param([{"op": "move", "from": "/spec", "path": "/spec/inside"}], 422, id="moving into itself"),
        pytest.param([{"op": "add", "path": "/spec/containers/x", "value": 1}], 422, id="an index that is no number"),
        pytest.param([{"op": "add", "path": "/metadata/labels/a/b", "value": 1}], 422, id="adding inside a scalar"),
        pytest.param([{"op": "test", "path": "/metadata/labels/a", "value": "2"}], 422, id="a test that fails"),
        pytest.param(
            [{"op": "test", "path": "/metadata/labels/b", "value": "2"}], 422, id="a test of what is not there"
        ),
        pytest.param([{"op": "replace", "path": "", "value": 1}], 422, id="a result that is no object"),
        pytest.param([{"op": "test", "path": "/a", "value": 1}] * (MAX_OPERATIONS + 1), 413, id="too many operations"),
    ],
)
def test_a_bad_patch_is_refused(operations: Any, status: int) -> None:
    with pytest.raises(PatchError) as refused:
        json_patched(POD, operations)
    assert refused.value.status == status
    assert str(refused.value)


def test_the_limit_is_said_as_kubernetes_says_it() -> None:
    with pytest.raises(PatchError, match="The allowed maximum operations in a JSON patch is 10000, got 10001"):
        json_patched({}, [{}] * 10_001)


def test_copies_of_copies_come_to_an_end() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 100
    with pytest.raises(PatchError, match="accumulated size increase of copy operations"):
        json_patched({"a": ["x" * 100]}, doubling)
