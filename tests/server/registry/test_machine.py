"""Random writes, and watches from random revisions: what a watcher puts together is what a list shows.

A copy of the state at each revision is kept beside, by the simplest means. Lists of old revisions and pages must show
it, watches that begin anywhere must lead to it, with selectors or without.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from server.registry.stories import ANN, CONFIG_MAP, World, config_map, tell
from situate.server.errors import StatusError
from situate.server.registry.converted_watch import ConvertedWatch
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.watchers import ObjectWatch
from situate.server.requests import DeleteOptions, ListOptions, Target, WatchOptions

NAMES = st.sampled_from("abcde")
SPACES = st.sampled_from(["default", "other"])
COLOURS = st.sampled_from(["red", "blue"])
SCOPES = st.sampled_from(
    [
        {"namespace": ""},
        {"namespace": "default"},
        {"namespace": "", "labels": "colour=red"},
        {"namespace": "other", "labels": "colour!=red"},
        {"namespace": "default", "fields": "metadata.name=a"},
        {"namespace": "", "fields": "metadata.name!=b", "labels": "colour"},
    ]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), SPACES, NAMES, COLOURS),
        st.tuples(st.just("delete"), SPACES, NAMES),
        st.tuples(st.just("together"), st.lists(st.tuples(SPACES, NAMES, COLOURS), max_size=4)),
        st.tuples(st.just("watch"), SCOPES, st.integers(0, 30)),
        st.tuples(st.just("page"), SCOPES, st.integers(1, 3)),
        st.tuples(st.just("past"), SCOPES, st.integers(0, 30)),
    ),
    max_size=40,
)

State = dict[tuple[str, str], tuple[str, int]]
"""By namespace and name, the colour and the revision."""


@dataclass
class Watcher:
    scope: dict[str, str]
    watching: ObjectWatch | ConvertedWatch
    state: State
    revision: int

    def catch_up(self) -> None:
        for event in self.watching.ready(10_000):
            assert event.revision > self.revision or event.type == "ADDED"
            self.revision = max(self.revision, event.revision)
            assert event.stored is not None
            place = event.stored.namespace, event.stored.name
            if event.type == "DELETED":
                del self.state[place]
            else:
                assert (event.type == "ADDED") == (place not in self.state)
                self.state[place] = _seen(event.stored)


@dataclass
class Bench:
    world: World
    history: dict[int, State] = field(default_factory=dict)
    watchers: list[Watcher] = field(default_factory=list)

    async def put(self, space: str, name: str, colour: str) -> None:
        given = config_map(name, namespace=space, labels={"colour": colour})
        try:
            await self.world.create(given)
        except StatusError:
            await self.world.update(given)

    async def note(self) -> None:
        listing = await self.world.registry.list(Target(CONFIG_MAP))
        self.history[listing.revision] = {(held.namespace, held.name): _seen(held) for held in listing.items}

    async def run(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("put", space, name, colour):
                await self.put(space, name, colour)
            case ("delete", space, name):
                with suppress(StatusError):  # it is not there
                    await self.world.registry.delete(Target(CONFIG_MAP, space, name), ANN, DeleteOptions())
            case ("together", several):
                await asyncio.gather(*[self.put(*each) for each in several])
            case ("watch", scope, back):
                await self.watch(scope, back)
            case ("page", scope, limit):
                await self.page(scope, limit)
            case ("past", scope, back):
                await self.past(scope, back)
        await self.note()

    async def watch(self, scope: dict[str, str], back: int) -> None:
        """From what is there, or from a revision that was noted, whose state is then known."""
        noted = sorted(self.history)
        if back >= len(noted):
            state, revision, version = {}, 0, ""
        else:
            revision = noted[-1 - back]
            state, version = _selected(self.history[revision], scope), str(revision)
        options = WatchOptions(labels=scope.get("labels", ""), fields=scope.get("fields", ""), resource_version=version)
        watching = await self.world.registry.watch(Target(CONFIG_MAP, scope["namespace"]), options)
        self.watchers.append(Watcher(scope, watching, dict(state), revision))

    async def page(self, scope: dict[str, str], limit: int) -> None:
        options: dict[str, Any] = {key: scope[key] for key in ("labels", "fields") if key in scope}
        page = await self.world.registry.list(
            Target(CONFIG_MAP, scope["namespace"]), ListOptions(limit=limit, **options)
        )
        begun, found = page.revision, list(page.items)
        while page.continue_to:
            await self.put("default", "between", "blue" if len(found) % 2 else "red")
            page = await self.world.registry.list(
                Target(CONFIG_MAP, scope["namespace"]),
                ListOptions(limit=limit, continue_from=page.continue_to, **options),
            )
            assert page.revision == begun
            found += page.items
        exact = await self.world.registry.list(
            Target(CONFIG_MAP, scope["namespace"]),
            ListOptions(resource_version=str(begun), resource_version_match="Exact", **options),
        )
        assert [held.key for held in found] == [held.key for held in exact.items]
        assert [held.revision for held in found] == [held.revision for held in exact.items]

    async def past(self, scope: dict[str, str], back: int) -> None:
        noted = sorted(self.history)
        if back >= len(noted):
            return
        revision = noted[-1 - back]
        listing = await self.world.registry.list(
            Target(CONFIG_MAP, scope["namespace"]),
            ListOptions(
                labels=scope.get("labels", ""),
                fields=scope.get("fields", ""),
                resource_version=str(revision),
                resource_version_match="Exact",
            ),
        )
        found = {(held.namespace, held.name): _seen(held) for held in listing.items}
        assert found == _selected(self.history[revision], scope)

    def compare(self) -> None:
        newest = self.history[max(self.history)]
        for watcher in self.watchers:
            watcher.catch_up()
            assert watcher.state == _selected(newest, watcher.scope)


def _seen(held: StoredObject) -> tuple[str, int]:
    return held.labels["colour"], held.revision


def _selected(state: State, scope: dict[str, str]) -> State:
    """The same question, asked in five lines."""
    colours = {"colour=red": {"red"}, "colour!=red": {"blue"}}.get(scope.get("labels", ""), {"red", "blue"})
    unseen = {"metadata.name=a": "bcde between", "metadata.name!=b": "b"}.get(scope.get("fields", ""), "")
    return {
        (space, name): (colour, revision)
        for (space, name), (colour, revision) in state.items()
        if scope["namespace"] in ("", space) and colour in colours and name not in unseen
    }


@settings(max_examples=60)
@given(STEPS)
def test_what_watchers_put_together_is_what_lists_show(steps: list[tuple[Any, ...]]) -> None:
    async def story(world: World) -> None:
        bench = Bench(world)
        await bench.note()
        for step in steps:
            await bench.run(step)
            bench.compare()

    tell(story)
