"""Patches, as requests ask for them. What each kind of patch does is tested in tests/wire/patching."""

import asyncio
from typing import Any

import pytest

from server.registry.stories import ANN, CONFIG_MAP, POD, World, config_map, no, pod, tell
from situate.server.registry.patch import PatchType
from situate.server.registry.registry import collecting
from situate.server.registry.stored_object import UpdateResult
from situate.server.requests import Target, WriteOptions
from situate.wire.errors import MODIFIED

TARGET = Target(CONFIG_MAP, "default", "a")
POD_A = Target(POD, "default", "a")


async def patch(world: World, how: PatchType, body: Any, target: Target = TARGET, **options: Any) -> UpdateResult:
    return await world.registry.patch(target, how, body, ANN, WriteOptions(**options))


def applied(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def test_each_kind_of_patch_changes_an_object() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a", data={"x": "1", "y": "2"}))
        await patch(world, "merge", {"data": {"x": None, "z": "3"}})
        await patch(world, "json", [{"op": "replace", "path": "/data/y", "value": "4"}])
        await patch(world, "strategic", {"data": {"w": "5"}})
        await patch(world, "apply", applied(v="6"), field_manager="me")
        assert (await world.get(CONFIG_MAP, "a"))["data"] == {"y": "4", "z": "3", "w": "5", "v": "6"}

    tell(story)


def test_a_patch_that_changes_nothing_writes_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        before = await world.store.revision()
        world.later(60)
        await patch(world, "merge", {"data": {"k": "v"}})
        assert await world.store.revision() == before

    tell(story)


def test_patches_that_meet_are_all_made() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a", data={}))
        await asyncio.gather(*[patch(world, "merge", {"data": {f"k{each}": "v"}}) for each in range(4)])
        assert set((await world.get(CONFIG_MAP, "a"))["data"]) == {"k", "k0", "k1", "k2", "k3"}

    tell(story)


def test_a_patch_for_another_version_is_refused() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        asked = patch(world, "merge", {"metadata": {"resourceVersion": "1"}, "data": {"x": "1"}})
        assert await no(asked) == (409, "Conflict", f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}')

    tell(story)


def test_only_an_apply_creates_and_it_needs_a_name_and_a_manager() -> None:
    async def story(world: World) -> None:
        missing = (404, "NotFound", 'configmaps "a" not found')
        assert await no(patch(world, "merge", {})) == missing
        assert await no(patch(world, "apply", applied(x="1"))) == (
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        )
        nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
        assert (await no(patch(world, "apply", nameless, field_manager="me")))[2] == (
            "the name of the object (a based on URL) was undeterminable: name must be provided"
        )
        first = await patch(world, "apply", applied(x="1"), field_manager="me")
        again = await patch(world, "apply", applied(x="2"), field_manager="me")
        assert (first.created, again.created) == (True, False)
        [entry] = again.stored.object(CONFIG_MAP)["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"]) == ("me", "Apply")

    tell(story)


def test_an_apply_does_not_take_what_others_own_unless_forced() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a", data={"k": "1"}))
        code, reason, message = await no(patch(world, "apply", applied(k="2"), field_manager="me"))
        assert (code, reason) == (409, "Conflict")
        assert message == 'Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.k'
        done = await patch(world, "apply", applied(k="2"), field_manager="me", force=True)
        assert done.stored.object(CONFIG_MAP)["data"] == {"k": "2"}

    tell(story)


def test_unknown_fields_are_refused_told_or_dropped() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a"))
        before = await world.store.revision()
        wrong = {"spec": {"foo": 1}}
        code, reason, message = await no(patch(world, "merge", wrong, POD_A, field_validation="Strict"))
        assert (code, reason) == (422, "Invalid")
        assert 'strict decoding error: unknown field "spec.foo"' in message
        with collecting() as warnings:
            await patch(world, "merge", wrong, POD_A)
        assert warnings == ['unknown field "spec.foo"']
        with collecting() as warnings:
            await patch(world, "merge", wrong, POD_A, field_validation="Ignore")
        assert warnings == []
        assert await world.store.revision() == before

    tell(story)


def test_a_patch_cannot_make_another_object() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a"))
        texts = [
            ({"metadata": {"name": "b"}}, 400, "the name of the object (b) does not match the name on the URL (a)"),
            (
                {"metadata": {"namespace": "b"}},
                400,
                "the namespace of the provided object does not match the namespace sent on the request",
            ),
            (
                {"metadata": None},
                400,
                "the name of the object (a based on URL) was undeterminable: name must be provided",
            ),
            ({"metadata": {"uid": "b"}}, 422, 'metadata.uid: Invalid value: "b": field is immutable'),
            ({"kind": "Foo"}, 422, "patch: Invalid value"),
            ({"spec": {"containers": "x"}}, 422, "patch: Invalid value"),
        ]
        for body, code, text in texts:
            found = await no(patch(world, "merge", body, POD_A))
            assert found[0] == code, body
            assert text in found[2], body

    tell(story)


def test_a_patch_of_the_status_leaves_the_rest_alone() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a"))
        body = {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
        done = await patch(world, "strategic", body, Target(POD, "default", "a", "status"))
        obj = done.stored.object(POD)
        assert obj["status"]["phase"] == "Running"
        assert "nodeName" not in obj["spec"]

    tell(story)


def test_a_dry_run_of_a_patch_shows_and_writes_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        before = await world.store.revision()
        done = await patch(world, "merge", {"data": {"x": "1"}}, dry_run=True)
        assert done.stored.object(CONFIG_MAP)["data"] == {"k": "v", "x": "1"}
        assert await world.store.revision() == before

    tell(story)


def test_what_is_wrong_with_a_patch_is_told_with_the_patch() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a", data={"x": "1"}))
        type_of = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        _, _, message = await no(patch(world, "strategic", {"data": {"x": 3}}))
        assert message.endswith('patch: Invalid value: "map[data:map[x:3]]": cannot convert int64 to string')
        _, _, message = await no(patch(world, "merge", {"data": {"x": 3}}))
        assert 'patch: Invalid value: "{' in message
        assert message.endswith(type_of)
        wrong = {**applied(), "data": {"y": 3}}
        code, reason, message = await no(patch(world, "apply", wrong, field_manager="me"))
        assert (code, reason) == (400, "BadRequest")
        assert message == f"failed to create typed patch object (default/a; /v1, Kind=ConfigMap): {type_of}"

    tell(story)


@pytest.mark.parametrize(
    "wrong, why",
    [
        ({"metadata": {"labels": "x"}}, "cannot restore map from string"),
        ({"metadata": {"labels": [1]}}, "cannot restore map from slice"),
        ({"metadata": "x"}, "cannot restore struct from: string"),
        ({"spec": {"containers": {"a": 1}}}, "cannot restore slice from map"),
        ({"spec": {"priority": "x"}}, "unrecognized type: int32"),
        ({"spec": {"priority": 1.5}}, "cannot convert float64 to int32"),
        ({"spec": {"nodeName": 5.5}}, "unrecognized type: string"),
        ({"spec": {"hostNetwork": 5}}, "unrecognized type: bool"),
        ({"spec": {"restartPolicy": 7}}, "cannot convert int64 to v1.RestartPolicy"),
    ],
)
def test_a_value_of_another_type_in_a_strategic_merge_is_one_that_cannot_be_converted(
    wrong: dict[str, Any], why: str
) -> None:
    """Each as kube-apiserver v1.36.4 has answered it."""

    async def story(world: World) -> None:
        await world.create(pod("a"))
        _, _, message = await no(patch(world, "strategic", wrong, POD_A))
        assert message.endswith(f": {why}")

    tell(story)


def test_an_apply_names_the_fields_that_its_schema_does_not_have() -> None:
    async def story(world: World) -> None:
        await world.create(pod("a"))
        wrong = {**pod("a"), "spec": {"foo": 1}, "bar": 2}
        _, _, message = await no(patch(world, "apply", wrong, POD_A, field_manager="m"))
        assert message.endswith(
            "errors:\n  .spec.foo: field not declared in schema\n  .bar: field not declared in schema"
        )

    tell(story)
