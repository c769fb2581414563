"""Lists: pages, selectors, and how old an answer may be."""

import asyncio
from typing import Any

import msgspec
import pytest

from server.registry.stories import ANN, CONFIG_MAP, NODE, POD, World, config_map, no, pod, tell
from situate.server.errors import StatusError
from situate.server.registry import list as listing_module
from situate.server.registry import stored_object
from situate.server.registry.list import list_objects
from situate.server.registry.stored_object import ListResult, item_chunks
from situate.server.requests import DeleteOptions, ListOptions, Target
from situate.store.entries import Revision
from situate.store.transactions import Put


async def ask(world: World, namespace: str = "default", **options: Any) -> ListResult:
    return await world.registry.list(Target(CONFIG_MAP, namespace), ListOptions(**options))


async def fill(world: World, *names: str, namespace: str = "default") -> None:
    for name in names:
        await world.create(config_map(name, namespace=namespace, labels={"first": name[0]}))


def names(listing: ListResult) -> list[str]:
    return [held.name for held in listing.items]


def test_a_list_is_in_the_order_of_keys_of_one_namespace_or_of_all() -> None:
    async def story(world: World) -> None:
        await fill(world, "c", "a", "b")
        await fill(world, "z", namespace="aa")
        await fill(world, "y", namespace="aa-b")
        assert names(await ask(world)) == ["a", "b", "c"]
        assert names(await ask(world, "")) == ["y", "z", "a", "b", "c"]  # "aa-b/" is before "aa/"
        assert names(await ask(world, "none")) == []

    tell(story)


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_make_up_the_whole(limit: int) -> None:
    async def story(world: World) -> None:
        await fill(world, *"abcdef")
        found: list[str] = []
        page = await ask(world, limit=limit)
        while True:
            found += names(page)
            if not page.continue_to:
                break
            assert page.remaining == 6 - len(found)
            page = await ask(world, limit=limit, continue_from=page.continue_to)
        assert found == list("abcdef")
        assert page.remaining is None

    tell(story)


@pytest.mark.parametrize("page_size", [1, 2, 500])
def test_all_pages_are_of_the_moment_the_list_was_begun(page_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_module, "PAGE", page_size)

    async def story(world: World) -> None:
        await fill(world, *"abcdef")
        first = await ask(world, limit=2)
        await world.registry.delete(Target(CONFIG_MAP, "default", "d"), ANN)
        await world.create(config_map("bb"))
        await world.update(config_map("e", data={"k": "new"}))
        second = await ask(world, limit=3, continue_from=first.continue_to)
        assert names(second) == ["c", "d", "e"]
        assert second.remaining == 1
        assert second.revision == first.revision
        assert second.items[2].object(CONFIG_MAP)["data"] == {"k": "v"}
        third = await ask(world, limit=3, continue_from=second.continue_to)
        assert names(third) == ["f"]
        assert not third.continue_to

    tell(story)


def test_pages_of_what_is_selected_do_not_say_how_many_remain() -> None:
    async def story(world: World) -> None:
        await fill(world, "a1", "b1", "a2", "b2", "a3")
        first = await ask(world, limit=2, labels="first=a")
        assert names(first) == ["a1", "a2"]
        assert first.remaining is None
        await fill(world, "a4")
        last = await ask(world, limit=2, labels="first=a", continue_from=first.continue_to)
        assert names(last) == ["a3"]
        assert not last.continue_to

    tell(story)


def test_a_page_that_is_compacted_away_can_be_had_from_the_newest_state() -> None:
    async def story(world: World) -> None:
        await fill(world, *"abcd")
        first = await ask(world, limit=2)
        await fill(world, "e")
        await world.store.compact(await world.store.revision())
        with pytest.raises(StatusError) as caught:
            await ask(world, limit=2, continue_from=first.continue_to)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
        assert caught.value.message.startswith("The provided continue parameter is too old")
        token = caught.value.status()["metadata"]["continue"]
        assert names(await ask(world, continue_from=token)) == ["c", "d", "e"]

    tell(story)


def test_a_token_expires_though_nothing_of_its_kind_has_changed() -> None:
    async def story(world: World) -> None:
        await fill(world, *"abcd")
        first = await ask(world, limit=2)
        await world.create(pod("other"))
        assert names(await ask(world, limit=1, continue_from=first.continue_to)) == ["c"]
        await world.store.compact(await world.store.revision())
        with pytest.raises(StatusError) as caught:
            await ask(world, limit=2, continue_from=first.continue_to)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
        following = await ask(world, limit=1, continue_from=caught.value.status()["metadata"]["continue"])
        assert (names(following), following.remaining) == (["c"], 1)
        assert following.revision > first.revision

    tell(story)


@pytest.mark.parametrize(
    "token, message",
    [
        ("abc", "invalid continue token: continue key is not valid: "),
        ("%", "invalid continue token: continue key is not valid: "),
        ("e30", "invalid continue token: continue key is not valid: server does not recognize this encoded version "),
        (
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0",
            (
                "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version "
                "meta.k8s.io/v1)"
            ),
        ),
        (
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIifQ",
            "invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
        ),
    ],
)
def test_a_token_that_is_none_is_refused(token: str, message: str) -> None:
    async def story(world: World) -> None:
        code, reason, found = await no(ask(world, continue_from=token))
        assert (code, reason) == (400, "BadRequest")
        assert found.startswith(message)

    tell(story)


FORBIDDEN = 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '


@pytest.mark.parametrize(
    "options, refusal",
    [
        (
            {"resource_version_match": "Exact"},
            (422, FORBIDDEN + "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ),
        (
            {"resource_version_match": "Exact", "resource_version": "0"},
            (422, FORBIDDEN + 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
        ),
        (
            {"resource_version_match": "Foo", "resource_version": "1"},
            (
                422,
                (
                    'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Foo": supported '
                    'values: "Exact", "NotOlderThan", ""'
                ),
            ),
        ),
        (
            {"resource_version": "abc"},
            (
                400,
                (
                    'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing '
                    '"abc": invalid syntax'
                ),
            ),
        ),
        ({"resource_version": "99999999999999999999"}, (400, "value out of range")),
        (
            {"continue_from": "e30", "resource_version": "5"},
            (400, "specifying resource version is not allowed when using continue"),
        ),
    ],
)
def test_options_that_contradict_are_refused(options: dict[str, str], refusal: tuple[int, str]) -> None:
    async def story(world: World) -> None:
        code, _, message = await no(ask(world, **options))
        assert code == refusal[0]
        assert message.endswith(refusal[1])

    tell(story)


def test_a_list_can_be_had_of_an_exact_revision() -> None:
    async def story(world: World) -> None:
        await fill(world, "a")
        then = str(await world.store.revision())
        assert names(await ask(world, resource_version=then, resource_version_match="Exact")) == ["a"]
        await fill(world, "b")
        old = await ask(world, resource_version=then, resource_version_match="Exact")
        assert names(old) == ["a"]
        assert str(old.revision) == then
        assert names(await ask(world, resource_version=then, resource_version_match="NotOlderThan")) == ["a", "b"]
        assert names(await ask(world, resource_version="0", limit=1)) == ["a", "b"]
        await world.store.compact(Revision(await world.store.revision()))
        text = "The resourceVersion for the provided list is too old."
        refusal = await no(ask(world, resource_version=then, resource_version_match="Exact"))
        assert refusal == (410, "Expired", text)

    tell(story)


def test_a_revision_that_is_not_there_yet_is_waited_for_and_then_refused() -> None:
    async def story(world: World) -> None:
        await fill(world, "a")
        target, soon = Target(CONFIG_MAP, "default"), str(await world.store.revision() + 1)
        waiting = asyncio.create_task(ask(world, resource_version=soon))
        await asyncio.sleep(0)
        await fill(world, "b")
        assert names(await waiting) == ["a", "b"]
        with pytest.raises(StatusError) as caught:
            await list_objects(world.cache, world.store, target, ListOptions(resource_version="999"), wait_s=0.01)
        current = await world.store.revision()
        status = caught.value.status()
        assert status["code"] == 504
        assert status["reason"] == "Timeout"
        assert status["message"] == f"Timeout: Too large resource version: 999, current: {current}"
        assert status["details"] == {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }

    tell(story)


def test_a_list_sees_what_others_wrote_to_the_store() -> None:
    async def story(world: World) -> None:
        await fill(world, "a")
        held = world.cache.get(CONFIG_MAP, "default", "a")
        assert held is not None
        await world.store.commit([], [Put(held.key.replace("/a", "/b"), held.value)])
        await world.store.commit([], [Put("/not/an/object", b"")])
        assert names(await ask(world)) == ["a", "b"]

    tell(story)


def test_pods_are_found_by_node_and_names_by_key() -> None:
    async def story(world: World) -> None:
        for name, node in [("c", "n1"), ("a", "n1"), ("b", "n2"), ("d", "")]:
            await world.create(pod(name, node=node))
        assert await world.names(POD, fields="spec.nodeName=n1") == ["a", "c"]
        assert await world.names(POD, namespace="", fields="spec.nodeName=n1", limit=1) == ["a"]
        assert await world.names(POD, fields="spec.nodeName=") == ["d"]
        assert await world.names(POD, fields="metadata.name=b") == ["b"]
        assert await world.names(POD, namespace="", fields="metadata.name=b,spec.nodeName=n1") == []
        assert [held.name for held in world.cache.on_node("n1")] == ["a", "c"]
        await world.registry.delete(Target(POD, "default", "a"), ANN, DeleteOptions(grace_s=0))
        assert [held.name for held in world.cache.on_node("n1")] == ["c"]
        await world.registry.delete(Target(POD, "default", "c"), ANN, DeleteOptions(grace_s=0))
        assert world.cache.on_node("n1") == []
        await world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        assert await world.names(NODE, namespace="", fields="metadata.name=n1") == ["n1"]
        assert await world.names(NODE, namespace="", fields="metadata.name=n2") == []

    tell(story)


@pytest.mark.parametrize("together", [1, 2, 200])
def test_what_is_shown_is_the_object_in_json(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        await fill(world, "a", "b", "c")
        listing = await ask(world)
        shown = [msgspec.json.decode(held.to_json(CONFIG_MAP)) for held in listing.items]
        assert shown == [held.object(CONFIG_MAP) for held in listing.items]
        monkeypatch.setattr(stored_object, "ITEMS_PER_CHUNK", together)
        items = msgspec.json.decode(b"[" + b"".join(item_chunks(CONFIG_MAP, listing.items)) + b"]")
        assert items == [{key: one[key] for key in one if key not in ("kind", "apiVersion")} for one in shown]

    tell(story)
