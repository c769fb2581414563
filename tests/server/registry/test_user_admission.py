"""When the admission plugins of users are called, what they see, and what becomes of what they change."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from server.registry.stories import (
    ANN,
    CONFIG_MAP,
    World,
    config_map,
    namespace,
    no,
    pod,
    tell,
)
from situate.server.errors import StatusError
from situate.server.registry.batch import Creation
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.registry.user_admission import AdmissionRequest, Operation, UserAdmission
from situate.server.requests import Caller, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND, Resource

Seen = list[tuple[str, str, Any]]
Change = Callable[[Object], None]


class Recorder:
    """A plugin for everything but namespaces, which remembers what it saw and may change the object or refuse it."""

    def __init__(self, name: str, seen: Seen, *, change: Change | None = None, refuses: str = "") -> None:
        self.name, self.seen, self.change, self.refuses = name, seen, change, refuses

    def concerns(self, resource: Resource, subresource: str, operation: Operation) -> bool:
        return resource.plural != "namespaces"

    async def admit(self, request: AdmissionRequest) -> None:
        self.seen.append((self.name, request.operation, deepcopy(request.object)))
        if self.refuses:
            raise StatusError(400, "", self.refuses)
        if self.change is not None and request.object is not None:
            changed = deepcopy(request.object)
            self.change(changed)
            if changed != request.object:
                request.object = changed


class Own:
    """One of the server's own plugins."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if target.resource.plural != "namespaces":
            self.seen.append(("own", action.upper(), deepcopy(new)))

    def version(self, target: Target) -> int | None:
        return 0


def label(key: str) -> Change:
    return lambda obj: obj["metadata"].setdefault("labels", {}).update({key: "yes"})


def story_of(
    story: Callable[[World], Any],
    seen: Seen,
    mutating: Sequence[Recorder] = (),
    validating: Sequence[Recorder] = (),
) -> None:
    def users(_: Cache) -> UserAdmission:
        return UserAdmission(mutating, validating)

    tell(story, users=users, admission=lambda _: [Own(seen)])


def test_the_servers_own_plugins_come_first_and_once_more_after_a_change() -> None:
    seen: Seen = []

    async def story(world: World) -> None:
        await world.create(namespace("default"))
        made = await world.create(config_map("a"))
        assert made["metadata"]["labels"] == {"x": "yes"}
        assert made["metadata"]["uid"]
        assert [name for name, _, _ in seen] == ["own", "first", "second", "own", "first", "second", "last"]
        assert seen[-1][2]["metadata"]["labels"] == {"x": "yes"}

    mutating = [Recorder("first", seen, change=label("x")), Recorder("second", seen)]
    story_of(story, seen, mutating, [Recorder("last", seen)])


def test_without_a_change_each_is_called_once() -> None:
    seen: Seen = []

    async def story(world: World) -> None:
        await world.create(namespace("default"))
        await world.create(config_map("a"))
        assert [name for name, _, _ in seen] == ["own", "first", "last"]

    story_of(story, seen, [Recorder("first", seen)], [Recorder("last", seen)])


def test_one_that_changes_a_new_object_does_not_see_what_the_server_sets() -> None:
    seen: Seen = []

    async def story(world: World) -> None:
        await world.create(namespace("default"))
        await world.create(config_map("", generateName="a-"))
        (_, _, early), (_, _, late) = seen[1:]
        assert "uid" not in early["metadata"]
        assert "name" not in early["metadata"]
        assert late["metadata"]["uid"]
        assert late["metadata"]["name"].startswith("a-")

    story_of(story, seen, [Recorder("first", seen)], [Recorder("last", seen)])


def test_an_update_and_a_deletion_may_be_refused() -> None:
    seen: Seen = []

    async def story(world: World) -> None:
        await world.create(namespace("default"))
        made = await world.create(config_map("a"))
        last.refuses = "no"
        assert await no(world.update({**made, "data": {"k": "w"}})) == (400, "", "no")
        assert await no(world.registry.delete(Target(CONFIG_MAP, "default", "a"), ANN)) == (400, "", "no")
        assert (await world.get(CONFIG_MAP, "a"))["data"] == {"k": "v"}
        assert [operation for name, operation, _ in seen if name == "last"] == ["CREATE", "UPDATE", "DELETE"]

    last = Recorder("last", seen)
    story_of(story, seen, [], [last])


def test_what_is_changed_in_an_update_is_stored_but_not_what_belongs_to_the_server() -> None:
    seen: Seen = []

    def forge(obj: Object) -> None:
        obj["metadata"]["labels"] = {"x": "yes"}
        obj["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z"

    async def story(world: World) -> None:
        await world.create(namespace("default"))
        made = await world.create(config_map("a"))
        first.change = forge
        done = await world.update({**made, "data": {"k": "w"}})
        assert done["metadata"]["labels"] == {"x": "yes"}
        assert done["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]

    first = Recorder("first", seen)
    story_of(story, seen, [first])


def test_a_plugin_cannot_move_a_new_object_to_another_namespace() -> None:
    seen: Seen = []

    async def story(world: World) -> None:
        await world.create(namespace("default"))
        code, _, message = await no(world.create(config_map("a")))
        assert (code, message) == (
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        )

    story_of(story, seen, [Recorder("first", seen, change=lambda obj: obj["metadata"].update(namespace="other"))])


def test_every_pod_of_a_template_is_shown_to_them() -> None:
    seen: Seen = []

    async def story(world: World) -> None:
        await world.create(namespace("default"))
        await world.create(pod("a"))
        await world.create(pod("b"))
        target = Target(BY_KIND["v1", "Pod"], "default")
        await world.registry.create_each([Creation(target, pod(name)) for name in ("c", "d")], ANN)
        assert [obj["metadata"]["name"] for name, _, obj in seen if name == "last"] == ["a", "b", "c", "d"]

    story_of(story, seen, [], [Recorder("last", seen)])


def test_a_dry_run_and_the_options_are_told() -> None:
    asked: list[AdmissionRequest] = []

    class Reader(Recorder):
        async def admit(self, request: AdmissionRequest) -> None:
            asked.append(request)

    async def story(world: World) -> None:
        await world.create(namespace("default"))
        await world.create(config_map("a"), dry_run=True, field_manager="me")
        await world.create(config_map("a"))
        await world.registry.delete(Target(CONFIG_MAP, "default", "a"), ANN, DeleteOptions(propagation="Background"))
        create, _, delete = asked
        assert create.dry_run
        assert create.options["kind"] == "CreateOptions"
        assert create.options["dryRun"] == ["All"]
        assert create.options["fieldManager"] == "me"
        assert delete.options["propagationPolicy"] == "Background"
        assert delete.old is not None

    story_of(story, [], [], [Reader("reader", [])])
