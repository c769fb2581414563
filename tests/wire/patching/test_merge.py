"""JSON merge patch: the cases of RFC 7386, appendix A, that have an object for a target and a patch."""

from typing import Any

import pytest

from situate.wire.patching import PatchError, merge_patched


@pytest.mark.parametrize(
    "target, patch, result",
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="a field is replaced"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="a field is added"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="null removes"),
        pytest.param({"a": "b"}, {"c": None}, {"a": "b"}, id="null for what is not there does nothing"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="a list gives way to a scalar"),
        pytest.param({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}, id="a list is replaced"),
        pytest.param({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="objects are merged"),
        pytest.param({"e": None}, {"a": 1}, {"e": None, "a": 1}, id="a null that was there stays"),
        pytest.param({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}, id="nulls leave nothing in what is new"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="an object in place of a scalar"),
    ],
)
def test_a_merge_patch(target: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    assert merge_patched(target, patch) == result


def test_the_target_is_left_as_it_was() -> None:
    target = {"a": {"b": 1}}
    merge_patched(target, {"a": {"b": 2, "c": 3}})
    assert target == {"a": {"b": 1}}


@pytest.mark.parametrize("patch", [[], "a", 1, None], ids=repr)
def test_a_patch_that_is_no_object_is_refused(patch: Any) -> None:
    with pytest.raises(PatchError, match="Invalid JSON Patch") as refused:
        merge_patched({"a": 1}, patch)
    assert refused.value.status == 400
