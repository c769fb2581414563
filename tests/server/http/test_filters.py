import asyncio
import json
import time

import pytest

from server.http.world import PODS, Door, Line, pod, told, world
from situate.server.http.ports import CreateHandler, CreateRequest
from situate.server.http.settings import Limits
from situate.server.requests import Object

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {}}


class Slow:
    """Answers a review when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.waiting = 0

    async def review(self, asked: CreateRequest) -> Object:
        self.waiting += 1
        await self.go.wait()
        return asked.body

    @property
    def specials(self) -> dict[tuple[str, str, str], CreateHandler]:
        special = CreateHandler(self.review, "authorization.k8s.io/v1", "SelfSubjectAccessReview")
        return {("authorization.k8s.io", "selfsubjectaccessreviews", ""): special}

    async def until(self, count: int) -> None:
        while self.waiting < count:
            await asyncio.sleep(0)


def test_who_is_not_known_learns_nothing() -> None:
    async def story() -> None:
        async with world() as here:
            reply = await here.ask("GET", "/api/v1/nonsense", headers={"Authorization": "Bearer wrong"})
            assert (reply.code, reply.message, reply.json["reason"]) == (401, "Unauthorized", "Unauthorized")

    told(story)


def test_who_may_not_ask_does_not_learn_whether_it_is_there() -> None:
    async def story() -> None:
        async with world(door=Door(barred=("list", "get"))) as here:
            for path in (PODS, "/api/v1/namespaces/default/nonsense", f"{PODS}/p"):
                reply = await here.get(path)
                assert reply.code == 403
            assert (await here.get(PODS)).message == (
                'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"'
            )

    told(story)


def test_every_request_leaves_a_record_of_who_asked_what_for_whom() -> None:
    async def story() -> None:
        async with world(door=Door(barred=("delete",))) as here:
            await here.ask("POST", f"{PODS}?dryRun=All", pod(), {"User-Agent": "kubectl/v1", "Audit-Id": "abc-1"})
            await here.ask("DELETE", f"{PODS}/p", headers={"Impersonate-User": "bob"})
            await here.ask("GET", f"{PODS}?fieldSelector=metadata.name%3Dp")
            made, gone, listed = here.door.audit.records
            assert (made.caller and made.caller.name, made.attributes.verb, made.code, made.decision) == (
                "alice",
                "create",
                201,
                "allow",
            )
            assert (made.audit_id, made.agent, made.uri) == ("abc-1", "kubectl/v1", f"{PODS}?dryRun=All")
            assert (gone.caller and gone.caller.name, gone.impersonated and gone.impersonated.name) == ("alice", "bob")
            assert (gone.code, gone.decision, gone.reason) == (403, "forbid", "Forbidden")
            assert (listed.attributes.name, listed.attributes.fields) == ("p", "metadata.name=p")

    told(story)


def test_a_host_that_is_not_ours_is_refused_before_anything_else() -> None:
    async def story() -> None:
        async with world() as here:
            reply = await here.ask("GET", "/version", host="evil.example", headers={"Authorization": "Bearer wrong"})
            assert (reply.code, reply.json["reason"]) == (403, "Forbidden")

    told(story)


@pytest.mark.parametrize("groups, code", [((), 429), (("system:masters",), 201)])
def test_one_request_too_many_is_asked_to_come_again(groups: tuple[str, ...], code: int) -> None:
    async def story() -> None:
        slow = Slow()
        limits = Limits(writes=2, queue=0)
        async with world(limits=limits, specials=slow.specials, door=Door(groups=groups)) as here:
            async with asyncio.TaskGroup() as tasks:
                first = [tasks.create_task(here.ask("POST", REVIEWS, REVIEW)) for _ in range(2)]
                await slow.until(2)
                third = tasks.create_task(here.ask("POST", REVIEWS, REVIEW))
                if code == 429:
                    reply = await third
                    assert (reply.code, reply.headers["retry-after"]) == (429, "1")
                    assert reply.json["details"]["retryAfterSeconds"] == 1
                else:
                    await slow.until(3)
                assert (await here.get("/version")).code == 200
                slow.go.set()
            assert [task.result().code for task in first] == [201, 201]
            assert third.result().code == code
            assert here.server.metrics.in_flight == {"readOnly": 0, "mutating": 0}

    told(story)


def test_a_request_that_takes_too_long_is_given_up() -> None:
    async def story() -> None:
        slow = Slow()
        async with world(limits=Limits(request_s=0.05), specials=slow.specials) as here, here.line() as line:
            line.request("POST", REVIEWS, REVIEW)
            await slow.until(1)
            here.server._filters.sweep(time.perf_counter() + 1.0)
            reply = await line.reply()
            assert (reply.code, reply.json["reason"]) == (504, "Timeout")
            assert await line.ended()

    told(story)


def test_a_client_may_give_a_request_less_time() -> None:
    async def story() -> None:
        slow = Slow()
        async with world(specials=slow.specials) as here, here.line() as line:
            line.request("POST", f"{REVIEWS}?timeout=2s", REVIEW)
            await slow.until(1)
            here.server._filters.sweep(time.perf_counter() + 1.0)
            assert here.server._filters.running == 1
            here.server._filters.sweep(time.perf_counter() + 3.0)
            assert (await line.reply()).code == 504

    told(story)


def test_a_fault_of_ours_is_an_answer_and_a_count_and_the_server_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with world(door=Door(broken=True)) as here:
            reply = await here.get(PODS)
            assert (reply.code, reply.json["reason"]) == (500, "InternalError")
            assert "ZeroDivisionError" not in reply.message
            assert reply.headers["audit-id"] in reply.message
            assert here.server.metrics.panics == 1

    told(story)
    assert len([one for one in caplog.records if one.levelname == "ERROR"]) == 1


def too_large(size: int) -> bytes:
    return json.dumps({**pod(), "metadata": {"name": "p", "annotations": {"a": "x" * size}}}).encode()


def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    async def story() -> None:
        async with world(limits=Limits(body_bytes=1000)) as here:
            async with here.line() as line:
                line.request("POST", PODS, None, {"Content-Length": "1000000000"})
                reply = await line.reply()
                assert (reply.code, reply.message) == (413, "Request entity too large: limit is 1000")
            assert (await here.ask("POST", PODS, too_large(100))).code == 201

    told(story)


async def chunked(line: Line, size: int) -> None:
    line.request("POST", PODS, None, {"Transfer-Encoding": "chunked"})
    for _ in range(size // 100):
        line.send(b"64\r\n" + b"x" * 100 + b"\r\n")


def test_a_body_that_does_not_tell_its_size_is_counted() -> None:
    async def story() -> None:
        async with world(limits=Limits(body_bytes=1000)) as here, here.line() as line:
            await chunked(line, 5000)
            assert (await line.reply()).code == 413

    told(story)


def test_a_client_that_waits_to_be_asked_for_the_body_is_asked() -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            body = json.dumps(pod()).encode()
            line.request("POST", PODS, None, {"Content-Length": str(len(body)), "Expect": "100-continue"})
            assert (await line.head()).code == 100
            line.send(body)
            assert (await line.reply()).code == 201

    told(story)


def test_a_compressed_body_is_not_unpacked() -> None:
    async def story() -> None:
        async with world() as here:
            assert (await here.ask("POST", PODS, b"x" * 10, {"Content-Encoding": "gzip"})).code == 415

    told(story)


def test_a_user_agent_may_have_any_bytes() -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            body = json.dumps(pod()).encode()
            line.send(
                f"POST {PODS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
                + b"User-Agent: a\xff/1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            reply = await line.reply()
            assert reply.code == 201
            assert [one["manager"] for one in reply.json["metadata"]["managedFields"]] == ["a\ufffd"]

    told(story)
