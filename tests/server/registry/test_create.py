"""Creating objects."""

import asyncio
from typing import Any

import msgspec
import pytest

from server.registry.stories import ANN, CONFIG_MAP, NOON_S, POD, World, config_map, no, pod, tell
from situate.server.registry.registry import collecting
from situate.server.registry.transaction import MAX_ATTEMPTS
from situate.server.requests import Caller, Object, Target
from situate.wire.patching import FieldWriter, updated


def test_a_new_object_has_a_name_a_uid_a_time_and_a_version() -> None:
    async def story(world: World) -> None:
        made = await world.create(config_map("a", labels={"x": "y"}))
        metadata = made["metadata"]
        assert (made["apiVersion"], made["kind"], made["data"]) == ("v1", "ConfigMap", {"k": "v"})
        assert metadata["namespace"] == "default"
        assert metadata["uid"] == "uid-1"
        assert metadata["creationTimestamp"] == "2026-01-02T12:00:00Z"
        assert metadata["resourceVersion"] == str(await world.store.revision())
        assert await world.get(CONFIG_MAP, "a") == made

    tell(story)


def test_what_is_the_servers_is_not_taken_from_the_client() -> None:
    async def story(world: World) -> None:
        theirs: dict[str, Any] = {
            "uid": "mine",
            "creationTimestamp": "1999-01-01T00:00:00Z",
            "selfLink": "/x",
            "deletionTimestamp": "1999-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 3,
        }
        metadata = (await world.create(pod("a", generation=9, **theirs)))["metadata"]
        assert metadata["uid"] == "uid-1"
        assert metadata["generation"] == 1
        assert metadata["creationTimestamp"] == "2026-01-02T12:00:00Z"
        assert not {"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} & metadata.keys()

    tell(story)


def test_the_given_object_is_left_as_it_is() -> None:
    async def story(world: World) -> None:
        given = pod("a")
        before = msgspec.json.encode(given)
        await world.create(given)
        assert msgspec.json.encode(given) == before

    tell(story)


def test_what_is_there_already_is_not_created() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        refusal = (409, "AlreadyExists", 'configmaps "a" already exists')
        assert await no(world.create(config_map("a"))) == refusal
        assert await no(world.create(config_map("a"), dry_run=True)) == refusal

    tell(story)


def test_of_many_who_create_the_same_one_does() -> None:
    async def story(world: World) -> None:
        asked = [world.create(config_map("a", data={"by": str(each)})) for each in range(10)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        made = [answer for answer in answers if isinstance(answer, dict)]
        assert made == [await world.get(CONFIG_MAP, "a")]

    tell(story)


def test_a_generated_name_is_the_base_and_five_letters() -> None:
    async def story(world: World) -> None:
        made = await world.create(config_map(generateName="web-"))
        name = made["metadata"]["name"]
        assert name.startswith("web-")
        assert len(name) == len("web-") + 5
        assert set(name[4:]) <= set("bcdfghjklmnpqrstvwxz2456789")
        long = await world.create(config_map(generateName="x" * 80))
        assert len(long["metadata"]["name"]) == 63

    tell(story)


def test_a_generated_name_that_is_taken_is_generated_again() -> None:
    async def story(world: World) -> None:
        assert (await world.create(config_map(generateName="a-")))["metadata"]["name"] == "a-one"
        assert (await world.create(config_map(generateName="a-")))["metadata"]["name"] == "a-two"

    tell(story, suffixes=["one", "one", "one", "two"])


def test_names_are_not_generated_for_ever() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a-one"))
        assert (await no(world.create(config_map(generateName="a-"))))[:2] == (409, "Conflict")

    tell(story, suffixes=["one"] * MAX_ATTEMPTS)


def test_an_object_must_say_the_same_as_the_url() -> None:
    async def story(world: World) -> None:
        target = Target(CONFIG_MAP, "default")
        texts = [
            (
                config_map("a", namespace="other"),
                (
                    400,
                    "BadRequest",
                    "the namespace of the provided object does not match the namespace sent on the request",
                ),
            ),
            (
                config_map("a", resourceVersion="5"),
                (400, "BadRequest", "resourceVersion should not be set on objects to be created"),
            ),
            (
                config_map(),
                (
                    422,
                    "Invalid",
                    'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
                ),
            ),
        ]
        for given, expected in texts:
            assert await no(world.registry.create(target, given, ANN)) == expected
        assert await world.names(CONFIG_MAP) == []

    tell(story)


def test_a_namespace_on_what_has_none_is_dropped() -> None:
    async def story(world: World) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "default"}}
        assert "namespace" not in (await world.create(node))["metadata"]

    tell(story)


def test_a_dry_run_answers_as_if_and_writes_nothing() -> None:
    async def story(world: World) -> None:
        before = await world.store.revision()
        made = await world.create(config_map("a"), dry_run=True)
        assert made["metadata"]["uid"]
        assert "resourceVersion" not in made["metadata"]
        assert await world.store.revision() == before
        assert await world.names(CONFIG_MAP) == []

    tell(story)


def test_a_version_on_a_new_object_is_refused_when_it_would_be_stored() -> None:
    async def story(world: World) -> None:
        given = pod("a", resourceVersion="5")
        assert (await world.create(given, dry_run=True))["metadata"]["name"] == "a"
        assert (await no(world.create(given)))[2] == "resourceVersion should not be set on objects to be created"
        assert (await no(world.create(pod("A", resourceVersion="5"))))[0] == 422  # validation comes first

    tell(story)


def test_the_fields_of_a_new_object_are_its_writers() -> None:
    async def story(world: World) -> None:
        [entry] = (await world.create(pod("a", labels={"x": "y"}), Caller("ann", agent="kubectl/v1.36")))["metadata"][
            "managedFields"
        ]
        assert entry["manager"] == "kubectl"
        assert entry["fieldsV1"]["f:metadata"] == {"f:labels": {".": {}, "f:x": {}}}
        [named] = (await world.create(pod("b"), field_manager="me"))["metadata"]["managedFields"]
        assert named["manager"] == "me"

    tell(story)


def test_what_is_remembered_of_owners_is_what_would_be_found_out() -> None:
    """Objects that differ only in what nobody owns share an answer; all others have their own."""

    async def story(world: World) -> None:
        likes: list[Object] = [
            pod("a"),
            pod("b"),
            pod("c", labels={"x": "1"}),
            pod("d", labels={"x": "2"}),
            pod("e", labels={"y": "2"}),
            pod("f", annotations={"x": "1"}, finalizers=["x.y/z"]),
            pod("g", ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]),
            pod("h", ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "v"}]),
            pod("i", node="n"),
        ]
        for given in likes:
            world.later(1)
            made = await world.create(given)
            entries = made["metadata"].pop("managedFields")
            made["metadata"].pop("resourceVersion")
            writer = FieldWriter("kubectl", "v1", "Pod", f"2026-01-02T12:00:{world.now_s[0] - NOON_S:02}Z")
            # What admission and `prepare` add later is nobody's, so the expectation is made from what was there.
            expected = updated(None, made, writer)["metadata"]["managedFields"]
            assert entries == expected, given["metadata"]["name"]

    tell(story)


def test_what_is_wrong_with_an_object_is_said_at_once() -> None:
    async def story(world: World) -> None:
        bad = pod("a")
        bad["spec"]["containers"] = []
        code, reason, message = await no(world.create(bad))
        assert (code, reason) == (422, "Invalid")
        assert message == 'Pod "a" is invalid: spec.containers: Required value'
        assert await world.names(POD) == []

    tell(story)


def test_warnings_are_told_to_who_listens() -> None:
    async def story(world: World) -> None:
        duplicated = pod("a")
        duplicated["spec"]["nodeSelector"] = {"beta.kubernetes.io/os": "linux"}
        with collecting() as warnings:
            await world.create(duplicated)
        assert any("beta.kubernetes.io/os" in text for text in warnings)

    tell(story)


@pytest.mark.parametrize("version", ["0", "x", "9" * 30, "9" * 5_000, "-1", "\u0663"])
def test_what_is_no_version_does_not_keep_an_object_from_being_created(version: str) -> None:
    """As on kube-apiserver."""

    async def story(world: World) -> None:
        made = await world.create(config_map("a", resourceVersion=version))
        assert made["metadata"]["resourceVersion"] != version

    tell(story)
