"""One greedy client of each kind, and what is left for the others."""

import asyncio
import gzip
import json
import time
from contextlib import AsyncExitStack

import pytest

from server.http.test_filters import REVIEW, REVIEWS, Slow
from server.http.world import PODS, Door, Line, Reply, World, pod, told, world
from situate.server.errors import StatusError
from situate.server.http import responses
from situate.server.http.flow_control import flow_of
from situate.server.http.settings import Limits
from situate.server.requests import Caller

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Named(Door):
    """A caller is who its token says; without one it is anonymous."""

    def authenticate(self, peer: bytes | None, authorization: str, agent: str = "") -> Caller:
        name = authorization.removeprefix("Bearer ")
        if name == "wrong":
            raise StatusError(401, "Unauthorized", "Unauthorized")
        if not name:
            return Caller("system:anonymous", ("system:unauthenticated",))
        groups = ("system:nodes",) if name.startswith("system:node:") else ()
        return Caller(name, (*groups, "system:authenticated"))


def by(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}"}


async def stalled(here: World, stack: AsyncExitStack, name: str, sent: bytes = b"{") -> Line:
    """A POST whose body does not come."""
    line = await stack.enter_async_context(here.line())
    line.request("POST", PODS, None, {**by(name), "Content-Length": "3000000"})
    line.send(sent)
    return line


async def until_read(here: World, count: int) -> None:
    while sum(state.reading for state in here.server._filters._running.values()) < count:
        await asyncio.sleep(0.001)


def test_bodies_that_never_come_take_no_slot() -> None:
    async def story() -> None:
        async with world(limits=Limits(writes=2, queue=0), door=Named()) as here, AsyncExitStack() as stack:
            for _ in range(10):
                await stalled(here, stack, "mallory")
            await until_read(here, 10)
            assert here.server.metrics.in_flight["mutating"] == 0
            assert (await here.ask("POST", PODS, pod(), by("alice"))).code == 201

    told(story)


def test_a_body_that_does_not_come_in_time_is_given_up() -> None:
    async def story() -> None:
        async with world(limits=Limits(body_s=5.0), door=Named()) as here, AsyncExitStack() as stack:
            line = await stalled(here, stack, "mallory")
            await until_read(here, 1)
            here.server._filters.sweep(time.perf_counter() + 4.0)
            await asyncio.sleep(0.01)
            assert here.server._filters.running == 1
            here.server._filters.sweep(time.perf_counter() + 6.0)
            reply = await line.reply()
            assert (reply.code, reply.json["reason"]) == (504, "Timeout")
            assert await line.ended()

    told(story)


def test_half_sent_bodies_of_one_user_have_a_budget_of_memory_and_others_have_theirs() -> None:
    async def story() -> None:
        limits = Limits(bodies_bytes=4_000_000, bodies_bytes_per_user=1_000_000)
        async with world(limits=limits, door=Named()) as here, AsyncExitStack() as stack:
            await stalled(here, stack, "mallory", b" " * 600_000)
            await until_read(here, 1)
            second = await stalled(here, stack, "mallory", b" " * 600_000)
            assert (await second.reply()).code == 429
            body = b" " * 600_000 + b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
            assert (await here.ask("POST", PODS, body, by("alice"))).code == 201
            assert here.server.metrics.rejected == {"bodies": 1}
        assert not here.server._filters._flows._bodies

    told(story)


def test_half_sent_bodies_of_users_leave_the_budget_of_the_system() -> None:
    async def story() -> None:
        limits = Limits(bodies_bytes=2_000_000, bodies_bytes_per_user=1_000_000)
        async with world(limits=limits, door=Named()) as here, AsyncExitStack() as stack:
            for name in ("mallory", "marvin", "moriarty"):
                await stalled(here, stack, name, b" " * 650_000)
            await until_read(here, 3)
            body = b" " * 600_000 + b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
            while (await here.ask("POST", PODS, body, by("alice"))).code != 429:
                await here.ask("DELETE", f"{PODS}/p", None, by("alice"))
            assert (await here.ask("POST", PODS, body, by("system:node:n1"))).code == 201
        assert not here.server._filters._flows._bodies

    told(story)


async def fill(here: World, slow: Slow, tasks: asyncio.TaskGroup, name: str, count: int) -> list[asyncio.Task[Reply]]:
    before = slow.waiting
    made = [tasks.create_task(here.ask("POST", REVIEWS, REVIEW, by(name))) for _ in range(count)]
    await slow.until(before + count)
    return made


@pytest.mark.parametrize("name", ["system:node:n1", "system:kube-scheduler", "system:serviceaccount:kube-system:dns"])
def test_slots_of_the_system_cannot_be_taken_by_users(name: str) -> None:
    async def story() -> None:
        slow = Slow()
        limits = Limits(writes=2, writes_per_user=1, system_writes=1, queue=1)
        async with world(limits=limits, specials=slow.specials, door=Named()) as here:
            async with asyncio.TaskGroup() as tasks:
                await fill(here, slow, tasks, "mallory", 1)
                await fill(here, slow, tasks, "trudy", 1)
                waiting = tasks.create_task(here.ask("POST", PODS, pod(), by("alice")))
                lease = {"metadata": {"name": "n1"}, "spec": {}}
                namespace = {"metadata": {"name": "kube-node-lease"}}
                assert (await here.ask("POST", "/api/v1/namespaces", namespace, by(name))).code == 201
                assert (await here.ask("POST", LEASES, lease, by(name))).code == 201
                assert not waiting.done()
                slow.go.set()
            assert waiting.result().code == 201

    told(story)


def test_a_user_whose_queue_is_full_is_refused_and_another_one_is_not() -> None:
    async def story() -> None:
        slow = Slow()
        limits = Limits(writes=3, writes_per_user=2, queue=1, refused_pause_s=0.01)
        async with world(limits=limits, specials=slow.specials, door=Named()) as here:
            async with asyncio.TaskGroup() as tasks:
                await fill(here, slow, tasks, "mallory", 2)
                queued = tasks.create_task(here.ask("POST", REVIEWS, REVIEW, by("mallory")))
                while (
                    b'situate_apiserver_waiting_requests{priority_level="workload",request_kind="mutating"} 1.0'
                    not in (here.server.metrics.text())
                ):
                    await asyncio.sleep(0.001)
                refused = await here.ask("POST", REVIEWS, REVIEW, by("mallory"))
                assert (refused.code, refused.headers["retry-after"]) == (429, "1")
                assert refused.message == "Too many requests, please try again later."
                assert (await here.ask("POST", PODS, pod(), by("alice"))).code == 201
                slow.go.set()
            assert queued.result().code == 201
            assert here.server.metrics.rejected == {"queue": 1}

    told(story)


def test_a_request_that_waits_too_long_for_its_slot_is_asked_to_retry() -> None:
    async def story() -> None:
        slow = Slow()
        limits = Limits(writes=1, writes_per_user=1, queue=1, refused_pause_s=0.01)
        async with world(limits=limits, specials=slow.specials, door=Named()) as here:
            async with asyncio.TaskGroup() as tasks:
                await fill(here, slow, tasks, "mallory", 1)
                queued = tasks.create_task(here.ask("POST", PODS, pod(), by("alice")))
                while here.server._filters.running < 2:
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0.01)
                here.server._filters.sweep(time.perf_counter() + 61.0)
                assert (await queued).code == 429
            assert here.server.metrics.in_flight["mutating"] == 0

    told(story)


def test_anonymous_callers_have_a_budget_and_health_checks_do_not_count() -> None:
    async def story() -> None:
        limits = Limits(anonymous_rate=0.001, anonymous_burst=3, anonymous_pause_s=30.0)
        async with world(limits=limits, door=Named()) as here, here.line() as line:
            for _ in range(20):
                assert (await here.get("/healthz")).code == 200
            assert [(await here.get("/version")).code for _ in range(5)] == [200, 200, 200, 429, 429]
            line.request("GET", "/version")
            assert (await line.reply()).code == 429
            line.request("GET", "/version")
            with pytest.raises(TimeoutError):  # nothing more is read for a while
                async with asyncio.timeout(0.2):
                    await line.reply()
            assert (await here.ask("GET", "/version", headers=by("alice"))).code == 200
            limits_hit = here.server.metrics.rejected
            assert limits_hit == {"anonymous": 3}

    told(story)


def test_failing_logins_are_slowed_down() -> None:
    async def story() -> None:
        limits = Limits(anonymous_rate=0.001, anonymous_burst=3, anonymous_pause_s=30.0)
        async with world(limits=limits, door=Named()) as here, here.line() as line:
            for _ in range(4):
                line.request("GET", "/version", headers=by("wrong"))
            assert [(await line.reply()).code for _ in range(4)] == [401] * 4
            line.request("GET", "/version", headers=by("wrong"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await line.reply()
            assert (await here.ask("GET", "/version", headers=by("alice"))).code == 200

    told(story)


def test_watches_of_a_user_are_limited_and_those_of_nodes_are_not() -> None:
    async def story() -> None:
        limits = Limits(streams=3, streams_per_user=2, refused_pause_s=0.01)
        async with world(limits=limits, door=Named()) as here, AsyncExitStack() as stack:

            async def watch(name: str) -> int:
                line = await stack.enter_async_context(here.line())
                line.request("GET", f"{PODS}?watch=true", headers=by(name))
                return (await line.head()).code

            assert [await watch("mallory") for _ in range(3)] == [200, 200, 429]
            assert [await watch("trudy") for _ in range(2)] == [200, 429]
            assert [await watch("system:node:n1") for _ in range(3)] == [200] * 3

    told(story)


@pytest.mark.parametrize(
    "name, groups, found",
    [
        ("root", ("system:masters",), ("exempt", "root")),
        ("alice", (), ("workload", "alice")),
        ("alice", ("system:nodes",), ("workload", "alice")),
        ("system:node:n1", ("system:nodes",), ("system", "system:node:n1")),
        ("system:kube-controller-manager", (), ("system", "system:kube-controller-manager")),
        ("system:serviceaccount:shop:a", (), ("workload", "system:serviceaccounts:shop")),
        ("system:serviceaccount:shop:b", (), ("workload", "system:serviceaccounts:shop")),
        ("system:serviceaccount:kube-system:a", (), ("system", "system:serviceaccounts:kube-system")),
        ("system:anonymous", ("system:unauthenticated",), ("anonymous", "system:anonymous")),
    ],
)
def test_who_shares_with_whom(name: str, groups: tuple[str, ...], found: tuple[str, str]) -> None:
    assert flow_of(Caller(name, groups)) == found


def config_map(name: str, size: int) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "x" * size}}


MAPS = "/api/v1/namespaces/default/configmaps"


async def fill_maps(here: World, count: int, size: int) -> None:
    async with here.line() as line:
        for number in range(count):
            line.request("POST", MAPS, config_map(f"m-{number}", size), by("alice"))
            assert (await line.reply()).code == 201


async def deaf(here: World, stack: AsyncExitStack, name: str, path: str) -> Line:
    """A client that asks and does not read."""
    line = await stack.enter_async_context(here.line())
    line.writer.transport.pause_reading()  # type: ignore[attr-defined]
    line.request("GET", path, headers=by(name))
    return line


def test_large_lists_of_one_user_wait_for_each_other_and_not_for_those_of_others() -> None:
    async def story() -> None:
        async with world(limits=Limits(large_lists_per_user=1), door=Named()) as here, AsyncExitStack() as stack:
            await fill_maps(here, 20, 1_000_000)
            flows = here.server._filters._flows
            first = await deaf(here, stack, "mallory", MAPS)
            while not flows.large_lists.running:
                await asyncio.sleep(0.001)
            second = await deaf(here, stack, "mallory", MAPS)
            while not flows.large_lists.waiting:
                await asyncio.sleep(0.001)
            assert len((await here.ask("GET", MAPS, headers=by("alice"))).json["items"]) == 20
            assert flows.large_lists.waiting == 1
            for line in (first, second):
                line.writer.transport.resume_reading()  # type: ignore[attr-defined]
                assert len((await line.reply()).json["items"]) == 20
            assert (flows.large_lists.running, flows.large_lists.waiting) == (0, 0)

    told(story)


def test_users_that_read_large_lists_slowly_do_not_hold_up_those_of_the_system() -> None:
    async def story() -> None:
        limits = Limits(large_lists=2, large_lists_per_user=1)
        async with world(limits=limits, door=Named()) as here, AsyncExitStack() as stack:
            await fill_maps(here, 20, 1_000_000)
            flows = here.server._filters._flows
            for name in ("mallory", "marvin", "moriarty"):
                await deaf(here, stack, name, MAPS)
            while (flows.large_lists.running, flows.large_lists.waiting) != (2, 1):
                await asyncio.sleep(0.001)
            async with asyncio.timeout(3.0):
                reply = await here.ask("GET", MAPS, headers=by("system:kube-scheduler"))
            assert len(reply.json["items"]) == 20
            assert flows.system_large_lists.running == 0

    told(story)


def test_what_one_user_does_not_read_is_limited_and_the_next_connection_is_cut() -> None:
    async def story() -> None:
        limits = Limits(unread_bytes_per_user=3 * 65_536, large_lists_per_user=16)
        async with world(limits=limits, door=Named()) as here, AsyncExitStack() as stack:
            await fill_maps(here, 20, 1_000_000)
            for _ in range(8):
                await deaf(here, stack, "mallory", MAPS)
            while here.server.metrics.rejected.get("unread", 0) < 5:
                await asyncio.sleep(0.01)
            assert len((await here.ask("GET", MAPS, headers=by("alice"))).json["items"]) == 20
        assert not here.server._filters._flows._unread

    told(story)


def test_a_watch_that_is_not_read_is_cut() -> None:
    async def story() -> None:
        async with world(limits=Limits(slow_s=0.2), door=Named()) as here, AsyncExitStack() as stack:
            await fill_maps(here, 20, 1_000_000)
            await deaf(here, stack, "mallory", f"{MAPS}?watch=true")
            while not here.server._filters._flows._unread:
                await asyncio.sleep(0.01)
            while here.server._filters.running:
                await asyncio.sleep(0.01)
            assert here.server.metrics.count(200) == 1

    told(story)


def test_a_large_list_is_not_in_memory_as_a_whole_even_if_it_is_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    real = responses._packer

    class Packer:
        def __init__(self) -> None:
            self._real = real()
            self.flush = self._real.flush

        def compress(self, piece: bytes) -> bytes:
            nonlocal largest
            largest = max(largest, len(piece))
            return self._real.compress(piece)

    monkeypatch.setattr(responses, "_packer", Packer)

    async def story() -> None:
        async with world(door=Named()) as here:
            await fill_maps(here, 10, 1_000_000)
            reply = await here.ask("GET", MAPS, headers={**by("alice"), "Accept-Encoding": "gzip"})
            assert reply.headers["content-encoding"] == "gzip"
            assert len(json.loads(gzip.decompress(reply.body))["items"]) == 10

    told(story)
    assert 1_000_000 < largest < 1_100_000


def test_credentials_of_many_watches_are_checked_once_and_their_end_ends_all_of_them() -> None:
    asked: list[str] = []
    ended: set[str] = set()

    class Counting(Named):
        def authenticate(self, peer: bytes | None, authorization: str, agent: str = "") -> Caller:
            asked.append(authorization)
            if authorization in ended:
                raise StatusError(401, "Unauthorized", "Unauthorized")
            return super().authenticate(peer, authorization, agent)

    async def story() -> None:
        async with world(door=Counting()) as here, AsyncExitStack() as stack:
            lines = {name: [await stack.enter_async_context(here.line()) for _ in range(3)] for name in ("bob", "eve")}
            for name, each in lines.items():
                for line in each:
                    line.request("GET", f"{PODS}?watch=true", None, by(name))
                    assert (await line.head()).code == 200
            asked.clear()
            ended.add("Bearer eve")
            here.server._filters._next_check = 0.0
            here.server._filters.sweep(time.perf_counter())
            assert sorted(asked) == ["Bearer bob", "Bearer eve"]
            for line in lines["eve"]:
                assert await line.ended()
            assert here.server._filters.running == 3

    told(story)
