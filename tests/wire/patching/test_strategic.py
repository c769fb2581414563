"""Strategic merge patch: what each directive does; and that the patch of a diff leads from one object to another."""

from typing import Any

import pytest
from hypothesis import given, settings

from situate.wire.patching import MergeSchema, PatchError, merge_schema, strategic_patched
from wire.patching.strategies import DEPLOYMENTS, Json

DEPLOYMENT = merge_schema("apps/v1", "Deployment")
POD = merge_schema("v1", "Pod").field("spec")
CONTAINER = POD.field("containers").item
METADATA = merge_schema("v1", "Pod").field("metadata")


@pytest.mark.parametrize(
    "shape, target, patch, result",
    [
        pytest.param(
            POD,
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
            {"containers": [{"name": "b", "image": "2"}]},
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]},
            id="containers are merged by name",
        ),
        pytest.param(
            POD,
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "b"}]},
            {"containers": [{"name": "b"}, {"name": "a"}]},
            id="a new container comes before those the patch does not speak of",
        ),
        pytest.param(
            POD,
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"$patch": "delete", "name": "a"}]},
            {"containers": [{"name": "b"}]},
            id="a container is deleted",
        ),
        pytest.param(
            POD,
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"$patch": "replace"}, {"name": "c"}]},
            {"containers": [{"name": "c"}]},
            id="a list that would be merged is replaced",
        ),
        pytest.param(
            POD,
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "b"}]},
            {"tolerations": [{"key": "b"}]},
            id="tolerations are replaced",
        ),
        pytest.param(
            CONTAINER,
            {"ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81}]},
            {"ports": [{"containerPort": 80, "name": "web"}]},
            {"ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}, {"containerPort": 81}]},
            id="ports are merged by number alone",
        ),
        pytest.param(
            CONTAINER,
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": None, "valueFrom": {"x": 1}}]},
            {"env": [{"name": "A", "valueFrom": {"x": 1}}]},
            id="null removes a field of an item",
        ),
        pytest.param(
            POD,
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]},
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            id="retainKeys drops what it does not name",
        ),
        pytest.param(
            POD,
            {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
            {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]},
            {"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]},
            id="an order is set, and who is not named keeps a place",
        ),
        pytest.param(
            METADATA,
            {"finalizers": ["a", "b"]},
            {"finalizers": ["c", "a"]},
            {"finalizers": ["c", "a", "b"]},
            id="finalizers are added to",
        ),
        pytest.param(
            METADATA,
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["b"]},
            id="a finalizer is taken off",
        ),
        pytest.param(
            METADATA,
            {"finalizers": ["a", "b", "c"]},
            {
                "$setElementOrder/finalizers": ["b", "d"],
                "finalizers": ["d"],
                "$deleteFromPrimitiveList/finalizers": ["a"],
            },
            {"finalizers": ["b", "d", "c"]},
            id="all about one list at once",
        ),
        pytest.param(
            METADATA,
            {"ownerReferences": [{"uid": "1", "name": "a"}]},
            {"ownerReferences": [{"uid": "1", "name": "b"}, {"uid": "2", "name": "c"}]},
            {"ownerReferences": [{"uid": "1", "name": "b"}, {"uid": "2", "name": "c"}]},
            id="owners are merged by uid",
        ),
        pytest.param(
            METADATA,
            {"labels": {"a": "1", "b": "2"}},
            {"labels": {"a": None}},
            {"labels": {"b": "2"}},
            id="null removes",
        ),
        pytest.param(
            METADATA,
            {"labels": {"a": "1"}},
            {"labels": {"$patch": "replace", "b": "2"}},
            {"labels": {"b": "2"}},
            id="an object is replaced",
        ),
        pytest.param(METADATA, {"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}, id="emptied"),
        pytest.param(METADATA, {}, {"labels": {"$patch": "delete"}}, {}, id="nothing there to be emptied"),
        pytest.param(
            METADATA,
            {},
            {"labels": {"a": None, "b": "1"}},
            {"labels": {"b": "1"}},
            id="nulls leave nothing in what is new",
        ),
        pytest.param(
            merge_schema("policy/v1", "PodDisruptionBudget").field("spec"),
            {"selector": {"matchLabels": {"a": "1"}}},
            {"selector": {"matchLabels": {"b": "2"}}},
            {"selector": {"matchLabels": {"b": "2"}}},
            id="a budget's selector is replaced",
        ),
        pytest.param(
            merge_schema("batch/v1", "Job").field("status"),
            {"conditions": [{"type": "A", "status": "True"}]},
            {"conditions": [{"type": "B"}, {"type": "A", "status": "False"}]},
            {"conditions": [{"type": "B"}, {"type": "A", "status": "False"}]},
            id="conditions are merged by type",
        ),
        pytest.param(METADATA, {"finalizers": []}, {"finalizers": []}, {"finalizers": []}, id="two empty lists"),
        pytest.param(METADATA, {"labels": "x"}, {"labels": {"a": "1"}}, {"labels": {"a": "1"}}, id="another type"),
    ],
)
def test_a_strategic_merge_patch(shape: MergeSchema, target: Json, patch: Json, result: Json) -> None:
    assert strategic_patched(target, patch, shape) == result


def test_the_target_and_the_patch_are_left_as_they_were() -> None:
    target: Json = {"containers": [{"name": "a", "env": [{"name": "A"}]}]}
    patch: Json = {
        "containers": [{"name": "a", "$retainKeys": ["name"], "env": None}],
        "$setElementOrder/containers": [],
    }
    strategic_patched(target, patch, POD)
    assert target == {"containers": [{"name": "a", "env": [{"name": "A"}]}]}
    assert len(patch["containers"][0]) == 3
    assert len(patch) == 2


@pytest.mark.parametrize(
    "target, patch, message",
    [
        pytest.param({}, [], "invalid JSON document", id="a patch that is no object"),
        pytest.param({}, {"$patch": "merge"}, "unknown patch type: merge in map: map\\[\\$patch:merge\\]", id="merge"),
        pytest.param({}, {"$retainKeys": "a"}, "invalid patch format of retainKeys", id="retainKeys that are no list"),
        pytest.param({}, {"$retainKeys": ["a"], "b": 1}, "invalid patch format of retainKeys", id="a key not retained"),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": [{"image": "x"}]},
            "map: map\\[image:x\\] does not contain declared merge key: name",
            id="an item without its key",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": ["a"]},
            "list element types are not identical",
            id="mixed items",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": [[]]},
            "lists of lists are not supported",
            id="a list of lists",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": {}}]},
            "a merge key must be a scalar",
            id="an odd key",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "a", "$patch": "merge"}]},
            "merging lists cannot yet be specified in the patch",
            id="merge in a list",
        ),
        pytest.param(
            {}, {"$setElementOrder/x": 1}, "invalid patch format of setElementOrder list", id="an order, no list"
        ),
        pytest.param(
            {}, {"$setElementOrder": []}, "invalid patch format of setElementOrder list", id="an order of nothing"
        ),
        pytest.param(
            {}, {"$deleteFromPrimitiveList": []}, "invalid patch format of primitive list", id="a deletion from nothing"
        ),
        pytest.param(
            {},
            {
                "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
                "containers": [{"name": "b"}, {"name": "a"}],
            },
            "The order in patch list:",
            id="a patch in another order than it asks for",
        ),
    ],
)
def test_a_bad_patch_is_refused(target: Json, patch: Any, message: str) -> None:
    with pytest.raises(PatchError, match=message) as refused:
        strategic_patched(target, patch, POD)
    assert refused.value.status in (400, 422)


# ── a diff, as kubectl makes it, and the way back ────────────────────────────────────────────────────────────────────


def diff(old: Json, new: Json, shape: MergeSchema) -> Json:
    """The strategic merge patch that leads from one object to another."""
    patch: Json = {name: None for name in old if name not in new}
    for name, value in new.items():
        if name not in old:
            patch[name] = value
        elif old[name] != value:
            patch |= diff_field(name, old[name], value, shape.field(name))
    return patch


def diff_field(name: str, old: Any, new: Any, shape: MergeSchema) -> Json:
    if isinstance(old, dict) and isinstance(new, dict):
        return {name: diff(old, new, shape)}
    if not isinstance(old, list) or shape.merge_key is None:
        return {name: new}
    key = shape.merge_key
    if not key:
        gone = [item for item in old if item not in new]
        patch = {name: [item for item in new if item not in old], f"$setElementOrder/{name}": new}
        return patch | ({f"$deleteFromPrimitiveList/{name}": gone} if gone else {})
    before = {item[key]: item for item in old}
    wanted = {item[key] for item in new}
    items = [
        {key: item[key], **diff(before[item[key]], item, shape.item)} if item[key] in before else item
        for item in new
        if item != before.get(item[key])
    ]
    items += [{"$patch": "delete", key: item[key]} for item in old if item[key] not in wanted]
    return {name: items, f"$setElementOrder/{name}": [{key: item[key]} for item in new]}


@settings(max_examples=200)
@given(DEPLOYMENTS, DEPLOYMENTS)
def test_the_patch_of_a_diff_leads_to_its_target(old: Json, new: Json) -> None:
    assert strategic_patched(old, diff(old, new, DEPLOYMENT), DEPLOYMENT) == new


@settings(max_examples=50)
@given(DEPLOYMENTS)
def test_an_empty_patch_changes_nothing(target: Json) -> None:
    assert strategic_patched(target, {}, DEPLOYMENT) == target
