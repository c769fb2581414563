"""Extenders that lie, hang, redirect, never end, speak nonsense or are somebody else; on a loopback port, for real."""

import asyncio
import base64
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from builders import node, pod
from situate.core.changes import BindDone, BindFailed, Change, ExtenderSaid, NodeSeen, PodRef, PodSeen
from situate.core.config.decode import decode
from situate.core.config.defaults import with_defaults
from situate.core.config.errors import ConfigError
from situate.core.config.types import Extender, KubeSchedulerConfiguration
from situate.core.effects import AskExtender, Bind, SetCondition, Victims
from situate.core.engine.engine import Engine
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.loop.extenders import ANSWER_BYTES, Extenders
from situate.loop.scheduling.view import EngineView

DATA = Path(__file__).parent / "data"
WEB = PodRef("default", "web", "uid-web")
OLD = PodRef("default", "old", "uid-old")
BIND = Bind(WEB, "n1", 3, 0)

Result = TypeVar("Result")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class FakeObjects:
    """The objects that there are."""

    def __init__(self) -> None:
        self.pods = {WEB: pod("web", uid="uid-web", cpu="1"), OLD: pod("old", uid="uid-old", node_name="n1")}
        self.nodes = {name: node(name, cpu="4", labels={"zone": "a"}) for name in ("n1", "n2")}

    def pod(self, ref: PodRef) -> Pod | None:
        return self.pods.get(ref)

    def node(self, name: str) -> Node | None:
        return self.nodes.get(name)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


def config(*extenders: dict[str, Any]) -> KubeSchedulerConfiguration:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return with_defaults(decode({**head, "extenders": list(extenders)}))


def extender(url: str, **fields: Any) -> Extender:
    verbs = {"filterVerb": "filter", "prioritizeVerb": "score", "preemptVerb": "preempt", "bindVerb": "bind"}
    return config({"urlPrefix": url, "weight": 1, **verbs, **fields}).extenders[0]


def ask(verb: Any = "filter", number: int = 7) -> AskExtender:
    victims = (Victims("n1", (OLD,), 1),) if verb == "preempt" else ()
    return AskExtender(number, 0, verb, WEB, ("n1", "n2"), victims)


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server of one handler, on any free port; its address."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/x/{verb}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield f"{'https' if tls else 'http'}://localhost:{runner.addresses[0][1]}/x"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[str]:
    """A server that says whatever it likes."""

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(met, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x/"
    finally:
        server.close()
        await server.wait_closed()


async def asked(url: str, question: AskExtender, **fields: Any) -> ExtenderSaid:
    async with Extenders([extender(url, **fields)], FakeObjects()) as extenders:
        return await extenders.ask(question)


def answering(body: Any, heard: list[tuple[str, Any]] | None = None) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        if heard is not None:
            heard.append((request.match_info["verb"], await request.json()))
        return web.json_response(body)

    return handler


def answer_of(body: Any, question: AskExtender, heard: list[tuple[str, Any]] | None = None, **fields: Any) -> Any:
    async def work() -> ExtenderSaid:
        async with serving(answering(body, heard)) as url:
            return await asked(url, question, **fields)

    return run(work())


def problem_with(handler: Handler, **fields: Any) -> str:
    async def work() -> str:
        async with serving(handler) as url:
            said = await asked(url, ask(), **fields)
            assert said == ExtenderSaid(7, problem=said.problem)
            assert "\n" not in said.problem
            return said.problem.replace(url, "URL")

    return run(work())


# -- who behaves -------------------------------------------------------------------------------------------------------


def test_names_are_sent_to_an_extender_that_knows_the_nodes() -> None:
    heard: list[tuple[str, Any]] = []
    said = answer_of({"NodeNames": ["n2"], "FailedNodes": {"n1": "full"}}, ask(), heard, nodeCacheCapable=True)
    assert said == ExtenderSaid(7, nodes=("n2",), refused=(("n1", "full"),))
    (verb, body), *rest = heard
    assert (verb, rest) == ("filter", [])
    assert body["Pod"]["metadata"]["uid"] == "uid-web"
    assert (body["NodeNames"], body["Nodes"]) == (["n1", "n2"], None)


def test_whole_nodes_are_sent_to_one_that_does_not() -> None:
    heard: list[tuple[str, Any]] = []
    said = answer_of({"Nodes": {"items": [{"metadata": {"name": "n1"}}]}}, ask(), heard)
    assert said == ExtenderSaid(7, nodes=("n1",))
    body = heard[0][1]
    assert body["NodeNames"] is None
    assert [item["metadata"]["labels"] for item in body["Nodes"]["items"]] == [{"zone": "a"}, {"zone": "a"}]


def test_scores_and_victims_come_back() -> None:
    heard: list[tuple[str, Any]] = []
    assert answer_of([{"Host": "n1", "Score": 3}], ask("prioritize"), heard).scores == (("n1", 3),)
    agreed = {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-old"}]}}}
    assert answer_of(agreed, ask("preempt"), heard).victims == (("n1", ("uid-old",)),)
    assert [verb for verb, _ in heard] == ["score", "preempt"]
    assert heard[1][1]["NodeNameToVictims"]["n1"]["Pods"][0]["spec"]["nodeName"] == "n1"


def bound_by(handler: Handler, **fields: Any) -> BindDone | BindFailed:
    async def work() -> BindDone | BindFailed:
        async with serving(handler) as url, Extenders([extender(url, **fields)], FakeObjects()) as extenders:
            return await extenders.bind(BIND)

    return run(work())


def test_an_extender_binds() -> None:
    heard: list[tuple[str, Any]] = []
    assert bound_by(answering({"Error": ""}, heard)) == BindDone(WEB, 3)
    assert heard == [("bind", {"PodName": "web", "PodNamespace": "default", "PodUID": "uid-web", "Node": "n1"})]


def test_what_an_extender_refuses_to_bind_is_not_tried_again() -> None:
    said = bound_by(answering({"Error": "no"}))
    assert isinstance(said, BindFailed)
    assert (said.final, said.attempt, said.problem.endswith(": bind: no")) == (True, 3, True)


def test_a_bind_that_failed_on_the_way_may_be_tried_again() -> None:
    said = bound_by(failing(503))
    assert isinstance(said, BindFailed)
    assert not said.final


def test_what_the_engine_knows_is_what_is_sent() -> None:
    engine = Engine(config())
    engine.step(0, [NodeSeen(node("n1", cpu="1", pods="9")), PodSeen(pod("old", uid="uid-old", node_name="n1"))])
    engine.step(1, [PodSeen(pod("web", uid="uid-web", cpu="9"))])
    objects = EngineView(engine)
    waiting, bound, where = objects.pod(WEB), objects.pod(OLD), objects.node("n1")
    assert waiting is not None
    assert waiting.metadata.uid == "uid-web"
    assert bound is not None
    assert bound.spec.node_name == "n1"
    assert where is not None
    assert where.metadata.name == "n1"
    for stranger in (PodRef("default", "web", "x"), PodRef("default", "old", "x"), PodRef("default", "no", "x")):
        assert objects.pod(stranger) is None
    assert objects.node("n2") is None


def test_nobody_is_asked_about_a_pod_that_is_gone() -> None:
    async def work() -> str:
        gone = AskExtender(7, 0, "filter", PodRef("default", "gone", "x"), ("n1",))
        return (await asked("http://localhost:9/x", gone)).problem

    assert run(work()).endswith("filter: the pod is gone")


# -- who does not ------------------------------------------------------------------------------------------------------


def failing(status: int, **headers: str) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers=headers, body=b"{}")

    return handler


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


def raw(body: bytes, **headers: str) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, headers=headers)

    return handler


def test_one_that_hangs_is_given_up_after_its_timeout() -> None:
    expected = 'extender "URL": filter: did not answer within 50ms'
    assert problem_with(hang, httpTimeout="50ms") == expected


def test_one_that_begins_and_does_not_go_on_is_given_up_too() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"NodeNames": [')
        return await hang(request)

    assert problem_with(handler, httpTimeout="50ms").endswith("did not answer within 50ms")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    followed: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        followed.append(request.match_info["verb"])
        return web.Response(status=status, headers={"Location": "/x/other"})

    expected = f'extender "URL": filter: failed filter with extender at URL URL/filter, code {status}'
    assert problem_with(handler) == expected
    assert followed == ["filter"]


@pytest.mark.parametrize("status", [201, 204, 400, 404, 500, 503])
def test_any_other_status_is_a_failure(status: int) -> None:
    assert problem_with(failing(status)).endswith(f"code {status}")


@pytest.mark.parametrize("declared", [pytest.param(True, id="declared"), pytest.param(False, id="in chunks")])
def test_of_a_gigabyte_no_more_than_the_limit_is_read(declared: bool) -> None:
    written = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse(headers={"Content-Length": str(1 << 30)} if declared else {})
        await response.prepare(request)
        chunk = b" " * (256 << 10)
        while written < 1 << 30:
            await response.write(chunk)
            written += len(chunk)
        return response

    problem = problem_with(handler, nodeCacheCapable=True)
    assert problem == f'extender "URL": filter: answered with more than {ANSWER_BYTES} bytes'
    assert written < 1 << 26


def test_where_whole_nodes_were_sent_they_may_come_back() -> None:
    many = {f"n{number}": node(f"n{number}", labels={"text": "x" * 2_000}) for number in range(1_000)}

    async def echo(request: web.Request) -> web.StreamResponse:
        return web.json_response({"Nodes": (await request.json())["Nodes"]})

    async def work() -> ExtenderSaid:
        objects = FakeObjects()
        objects.nodes = many
        async with serving(echo) as url, Extenders([extender(url)], objects) as extenders:
            return await extenders.ask(AskExtender(1, 0, "filter", WEB, tuple(many)))

    assert run(work()).nodes == tuple(many)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>", id="a page"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[" * 100_000, id="brackets"),
        pytest.param(b'{"NodeNames": ["n1"]', id="half an answer"),
    ],
)
def test_nonsense_is_a_failure(body: bytes) -> None:
    assert problem_with(raw(body)) == 'extender "URL": filter: answered with what is not JSON'


def test_what_is_packed_is_not_unpacked() -> None:
    packed = gzip.compress(b'{"NodeNames": ["n1"]}' + b" " * (64 << 20))
    assert len(packed) < ANSWER_BYTES
    assert problem_with(raw(packed, **{"Content-Encoding": "gzip"}), nodeCacheCapable=True).endswith("not JSON")


def test_what_an_extender_says_went_wrong_is_told_in_one_line() -> None:
    handler = answering({"Error": "out of\n\n\x1b[31mluck " + "x" * 5_000, "NodeNames": ["n1"]})
    problem = problem_with(handler)
    assert problem.startswith('extender "URL": filter: out of [31mluck xxx')
    assert len(problem) < 400


def talked_to(talk: Talk, **fields: Any) -> str:
    async def work() -> str:
        async with talking(talk) as url:
            return (await asked(url, ask(), httpTimeout="2s", **fields)).problem

    return run(work())


def test_one_that_closes_early_is_a_failure() -> None:
    async def nothing(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None: ...

    async def half(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()

    for talk in (nothing, half):
        assert talked_to(talk).endswith("filter: closed the connection before it answered")


def test_one_that_does_not_speak_http_is_a_failure() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n")
        await writer.drain()

    assert talked_to(talk).endswith("filter: did not answer with HTTP")


def test_headers_without_end_are_a_failure() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        for __ in range(1_000):
            writer.write(b"x" * 65_536)
            await writer.drain()

    assert talked_to(talk).endswith("filter: did not answer with HTTP")


@pytest.mark.parametrize(
    "url, problem",
    [
        ("http://localhost:1/x", "cannot be reached: "),
        ("x", "its urlPrefix is not a URL"),
        ("ftp://localhost/x", "its urlPrefix is not a URL"),
        ("http://", "its urlPrefix is not a URL"),
    ],
)
def test_one_that_is_not_there_is_a_failure(url: str, problem: str) -> None:
    assert f": filter: {problem}" in run(asked(url, ask())).problem


def test_passwords_in_addresses_are_not_told() -> None:
    async def work() -> str:
        async with serving(failing(500)) as url:
            return (await asked(url.replace("://", "://me:secret@"), ask())).problem

    problem = run(work())
    assert "code 500" in problem
    assert "secret" not in problem
    assert "me:" not in problem


# -- TLS ---------------------------------------------------------------------------------------------------------------


def server_tls(name: str = "localhost", *, clients: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / f"{name}.pem")
    if clients:
        context.load_verify_locations(DATA / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def encoded(name: str) -> str:
    return base64.b64encode((DATA / name).read_bytes()).decode()


def over_tls(tls: ssl.SSLContext, **tls_config: Any) -> ExtenderSaid:
    async def work() -> ExtenderSaid:
        async with serving(answering({"NodeNames": ["n1"]}), tls) as url:
            return await asked(url, ask(), enableHTTPS=True, nodeCacheCapable=True, tlsConfig=tls_config)

    return run(work())


@pytest.mark.parametrize(
    "tls_config",
    [
        pytest.param({"caFile": str(DATA / "ca.pem")}, id="the authority in a file"),
        pytest.param({"caData": encoded("ca.pem")}, id="the authority as data"),
        pytest.param({"caData": encoded("ca.pem"), "caFile": "/nowhere"}, id="data before the file"),
        pytest.param({"insecure": True}, id="no authority, and so it was wished"),
    ],
)
def test_an_extender_is_asked_over_tls(tls_config: dict[str, Any]) -> None:
    assert over_tls(server_tls(), **tls_config).nodes == ("n1",)


def test_a_server_that_the_authority_does_not_vouch_for_is_not_asked() -> None:
    problem = over_tls(server_tls(), caFile=str(DATA / "other-ca.pem")).problem
    assert "its certificate is not trusted" in problem


def test_a_certificate_of_another_name_is_not_trusted_unless_that_name_is_given() -> None:
    authority = str(DATA / "ca.pem")
    assert "its certificate is not trusted" in over_tls(server_tls("elsewhere"), caFile=authority).problem
    assert over_tls(server_tls("elsewhere"), caFile=authority, serverName="elsewhere.test").nodes == ("n1",)


@pytest.mark.parametrize(
    "own",
    [
        pytest.param({"certFile": str(DATA / "client.pem"), "keyFile": str(DATA / "client.pem")}, id="in files"),
        pytest.param({"certData": encoded("client.pem"), "keyData": encoded("client.pem")}, id="as data"),
    ],
)
def test_an_extender_that_wants_to_know_us_is_shown_our_certificate(own: dict[str, str]) -> None:
    assert over_tls(server_tls(clients=True), caFile=str(DATA / "ca.pem"), **own).nodes == ("n1",)


def test_an_extender_that_wants_to_know_us_does_not_without_it() -> None:
    assert over_tls(server_tls(clients=True), caFile=str(DATA / "ca.pem")).problem


def test_a_server_without_tls_is_not_asked_over_tls() -> None:
    async def work() -> str:
        async with serving(answering({})) as url:
            tls = {"caFile": str(DATA / "ca.pem")}
            return (await asked(url.replace("http", "https"), ask(), enableHTTPS=True, tlsConfig=tls)).problem

    assert run(work()).endswith("filter: the TLS handshake failed")


@pytest.mark.parametrize(
    "tls_config, problem",
    [
        pytest.param(None, "caFile: Required value", id="no authority"),
        pytest.param({"caFile": "/nowhere/ca.pem"}, "the certificates cannot be loaded", id="no such file"),
        pytest.param({"caData": base64.b64encode(b"x").decode()}, "the certificates cannot be loaded", id="no PEM"),
        pytest.param({"caData": base64.b64encode(b"\xff").decode()}, "the certificates cannot be loaded", id="no text"),
        pytest.param(
            {"caFile": str(DATA / "ca.pem"), "certFile": str(DATA / "ca.pem")},
            "the certificates cannot be loaded",
            id="a certificate without its key",
        ),
    ],
)
def test_tls_that_cannot_be_had_is_said_in_one_line_before_anybody_is_asked(
    tls_config: dict[str, str] | None, problem: str
) -> None:
    one = extender("https://localhost/x", enableHTTPS=True, tlsConfig=tls_config)
    with pytest.raises(ConfigError) as raised:
        Extenders([one], FakeObjects())
    (line,) = raised.value.problems
    assert line.startswith("extenders[0].tlsConfig")
    assert problem in line
    assert "\n" not in line


# -- many at once ------------------------------------------------------------------------------------------------------


def test_no_more_than_so_many_requests_are_in_flight() -> None:
    seen = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal seen
        seen += 1
        return await hang(request)

    async def work() -> list[int]:
        """How many requests have arrived while all of them hang, at several times."""
        async with (
            serving(handler) as url,
            Extenders([extender(url, httpTimeout="30s")], FakeObjects(), in_flight=3) as extenders,
        ):
            asking = [asyncio.create_task(extenders.ask(ask(number=number))) for number in range(20)]
            counts = []
            while seen < 3:
                await asyncio.sleep(0.01)
            for _ in range(20):
                await asyncio.sleep(0.01)
                counts.append(seen)
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            return counts

    assert set(run(work())) == {3}


def test_beyond_the_limit_asking_fails_at_once() -> None:
    async def work() -> list[str]:
        async with serving(hang) as url:
            one = extender(url, httpTimeout="100ms")
            async with Extenders([one], FakeObjects(), in_flight=1, waiting=2) as extenders:
                said = await asyncio.gather(*(extenders.ask(ask(number=number)) for number in range(5)))
        return [answer.problem.rpartition("filter: ")[2] for answer in said]

    crowd = "2 requests are waiting already"
    assert run(work()) == ["did not answer within 100ms"] * 3 + [crowd] * 2


def test_one_extender_that_hangs_does_not_hold_up_another() -> None:
    async def work() -> ExtenderSaid:
        async with serving(hang) as bad, serving(answering({"NodeNames": ["n2"]})) as good:
            both = [extender(bad), extender(good, nodeCacheCapable=True)]
            async with Extenders(both, FakeObjects(), in_flight=1) as extenders:
                stuck = [asyncio.create_task(extenders.ask(ask(number=number))) for number in range(10)]
                said = await extenders.ask(AskExtender(99, 1, "filter", WEB, ("n1", "n2")))
                for task in stuck:
                    assert not task.done()
                    task.cancel()
                await asyncio.gather(*stuck, return_exceptions=True)
                return said

    assert run(work()).nodes == ("n2",)


# -- with the engine ---------------------------------------------------------------------------------------------------

GPU = "example.com/gpu"


class Driver:
    """Steps an engine, and has its questions asked. The time is how often it stepped."""

    def __init__(self, engine: Engine, extenders: Extenders) -> None:
        self.engine = engine
        self.extenders = extenders
        self.now = 0
        self.bound: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self.tasks: set[asyncio.Task[Any]] = set()

    def step(self, changes: list[Change]) -> None:
        self.now += 1
        for effect in self.engine.step(self.now, changes):
            match effect:
                case AskExtender():
                    self.tasks.add(asyncio.create_task(self.extenders.ask(effect)))
                case Bind(ref, where):
                    self.bound[ref.name] = where
                case SetCondition(ref, message=message):
                    self.told[ref.name] = message
                case _:
                    pass

    async def hear(self) -> None:
        """Hear what the open questions come to, and step with that."""
        done, self.tasks = await asyncio.wait(self.tasks, return_when=asyncio.ALL_COMPLETED)
        self.step([task.result() for task in done])


async def driven(handler: Handler, changes: list[Change], **fields: Any) -> tuple[Driver, list[str]]:
    """The pods that were bound before any answer came, and the driver after all answers."""
    async with serving(handler) as url:
        managed = [{"name": GPU}]
        made = config({"urlPrefix": url, "filterVerb": "filter", "managedResources": managed, **fields})
        engine = Engine(made)
        async with Extenders(made.extenders, EngineView(engine)) as extenders:
            driver = Driver(engine, extenders)
            driver.step(changes)
            at_once = list(driver.bound)
            while driver.tasks:
                await driver.hear()
            return driver, at_once


def cluster(gpus: int, others: int) -> list[Change]:
    room = [node(f"n{number}", cpu="64", pods="500", allocatable={GPU: "8"}) for number in range(5)]
    small = node("small", cpu="1", pods="500", allocatable={GPU: "1"}, unschedulable=True)
    return [
        *(NodeSeen(one) for one in (*room, small)),
        *(PodSeen(pod(f"gpu{number}", uid=f"g{number}", cpu="10m", requests={GPU: "1"})) for number in range(gpus)),
        *(PodSeen(pod(f"web{number}", uid=f"w{number}", cpu="10m")) for number in range(others)),
    ]


async def never_end(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"[" * 65_536)


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(hang, id="hangs"),
        pytest.param(never_end, id="never ends"),
        pytest.param(failing(302, Location="/x/other"), id="redirects"),
        pytest.param(failing(500), id="fails"),
        pytest.param(raw(b"?"), id="speaks nonsense"),
    ],
)
def test_a_bad_extender_costs_its_pods_a_retry_and_the_others_nothing(handler: Handler) -> None:
    driver, at_once = run(driven(handler, cluster(gpus=5, others=200), httpTimeout="200ms"))
    assert at_once == list(driver.bound) == [f"web{number}" for number in range(200)]
    assert sorted(driver.told) == [f"gpu{number}" for number in range(5)]
    assert all(message.startswith('extender "http://localhost:') for message in driver.told.values())
    entries = [driver.engine.queue.get(f"default/gpu{number}") for number in range(5)]
    assert all(entry is not None and entry.errors == 1 for entry in entries)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"NodeNames": ["moon", "small"]}, id="invents nodes"),
        pytest.param({"NodeNames": ["small"], "FailedNodes": {"n1": "x"}}, id="leaves a cordoned node"),
        pytest.param({"Nodes": {"items": [{"metadata": {"name": "small"}}]}}, id="hands over a node of its own"),
    ],
)
def test_a_lying_extender_cannot_place_a_pod_where_it_does_not_fit(body: Any) -> None:
    driver, _ = run(driven(answering(body), cluster(gpus=3, others=10), nodeCacheCapable="NodeNames" in body))
    assert not any(name.startswith("gpu") for name in driver.bound)
    assert len(driver.bound) == 10


def test_a_good_extender_places_its_pods() -> None:
    async def choose(request: web.Request) -> web.StreamResponse:
        names = json.loads(await request.read())["NodeNames"]
        return web.json_response({"NodeNames": [name for name in names if name == "n3"]})

    driver, _ = run(driven(choose, cluster(gpus=8, others=10), nodeCacheCapable=True))
    assert {where for name, where in driver.bound.items() if name.startswith("gpu")} == {"n3"}
    assert len(driver.bound) == 18
