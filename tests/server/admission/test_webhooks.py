"""Webhooks that answer, and those that do not answer well. Texts and reviews are compared with kube-apiserver's in
tests/kubernetes."""

import asyncio
import base64
import json
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import pytest

from server.registry.stories import ANN, CONFIG_MAP, LEASE, World, config_map, namespace, no, tell
from situate.core.cel.values import Value
from situate.server.admission.expressions import MatchCondition, unmet_condition
from situate.server.admission.users import user_admission
from situate.server.admission.webhooks import client as client_module
from situate.server.admission.webhooks.client import CallError, WebhookClient
from situate.server.admission.webhooks.metrics import WebhookMetrics
from situate.server.apiextensions.served import CustomKinds
from situate.server.identity.authorization.attributes import Attributes, AuthorizerDecision
from situate.server.identity.pki.authority import open_authority
from situate.server.registry.cache import Cache
from situate.server.registry.user_admission import UserAdmission
from situate.server.registry.warning import collecting
from situate.server.requests import SYSTEM, Caller, Object, Target
from situate.server.resources import BY_KIND

VALIDATING = BY_KIND["admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"]
Behaviour = Callable[[StreamReader, StreamWriter], Awaitable[None]]
Answer = Callable[[Object], Object]
METRICS = WebhookMetrics()


class Anybody:
    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision:
        return AuthorizerDecision(True)


def users(cache: Cache) -> UserAdmission:
    numbers = count(1)
    return user_admission(
        cache, CustomKinds(cache), Anybody(), WebhookClient(cache), METRICS, lambda: f"review-{next(numbers)}"
    )


@asynccontextmanager
async def listening(folder: Path, behave: Behaviour, *, tls: bool = True) -> AsyncIterator[tuple[int, str]]:
    """The port of a webhook, and its authorities for a caBundle."""
    authority = open_authority(folder / "pki", datetime.now(UTC))
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(authority.server_certificate(["127.0.0.1", "hook.default.svc"], datetime.now(UTC)))
    running: set[asyncio.Task[Any]] = set()

    async def hear(reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await behave(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0, ssl=own if tls else None)
    try:
        yield server.sockets[0].getsockname()[1], base64.b64encode(authority.bundle).decode()
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def read_request(reader: StreamReader) -> Object:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(
        int(line.partition(":")[2]) for line in head.split("\r\n") if line.lower().startswith("content-length")
    )
    found: Object = json.loads(await reader.readexactly(length))
    return found


def answering(answer: Answer) -> Behaviour:
    """A webhook that answers every request with this response."""

    async def behave(reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            asked = (await read_request(reader))["request"]
            response = {"uid": asked["uid"], "allowed": True, **answer(asked)}
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
            body = json.dumps(review).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            await writer.drain()

    return behave


def saying(text: bytes) -> Behaviour:
    async def behave(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(text)
        await writer.drain()
        await asyncio.sleep(60)

    return behave


async def silent(reader: StreamReader, writer: StreamWriter) -> None:
    await asyncio.sleep(60)


def configuration(port: int, bundle: str, kind: str = "Validating", name: str = "c", **spec: Any) -> Object:
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/x", "caBundle": bundle},
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **spec,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }


def told(folder: Path, behave: Behaviour, story: Callable[[World, int, str], Awaitable[None]], **more: Any) -> None:
    async def wrapped(world: World) -> None:
        await world.create(namespace("default"))
        async with listening(folder, behave, **more) as (port, bundle):
            await story(world, port, bundle)

    tell(wrapped, users=users)


def test_a_webhook_may_change_and_refuse_and_warn(tmp_path: Path) -> None:
    def answer(asked: Object) -> Object:
        if asked["operation"] == "DELETE":
            return {"allowed": False, "status": {"message": "stay", "code": 403}}
        patch = json.dumps([{"op": "add", "path": "/data/more", "value": "x"}]).encode()
        return {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode(), "warnings": ["careful"]}

    async def story(world: World, port: int, bundle: str) -> None:
        await world.create(configuration(port, bundle, "Mutating"))
        with collecting() as warnings:
            made = await world.create(config_map("a"))
        assert made["data"] == {"k": "v", "more": "x"}
        assert warnings == ["careful"]
        refused = await no(world.registry.delete(Target(CONFIG_MAP, "default", "a"), ANN))
        assert refused == (403, "", 'admission webhook "hook.example.com" denied the request: stay')

    told(tmp_path, answering(answer), story)
    text = METRICS.render().decode()
    which = 'name="hook.example.com",operation="DELETE"'
    assert "apiserver_admission_webhook_rejection_count" in text
    assert f'{which},rejection_code="403",type="admit"' in text


@pytest.mark.parametrize(
    "behave, tls, why",
    [
        pytest.param(silent, False, "context deadline exceeded", id="never says anything"),
        pytest.param(silent, True, "context deadline exceeded", id="never answers"),
        pytest.param(
            saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
            True,
            "context deadline exceeded",
            id="stops halfway",
        ),
        pytest.param(
            saying(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"),
            True,
            "the webhook answered with a redirect, which is not followed",
            id="redirects",
        ),
        pytest.param(
            saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 300_000),
            True,
            "the answer is longer than 200000 bytes",
            id="says too much",
        ),
        pytest.param(saying(b"SSH-2.0\r\n\r\n"), True, "the answer is not HTTP/1.1", id="speaks something else"),
        pytest.param(saying(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 99_999), True, "is too long", id="has endless headers"),
    ],
)
def test_a_hostile_webhook_costs_its_own_requests(
    behave: Behaviour, tls: bool, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "ANSWER_BYTES", 200_000)

    async def story(world: World, port: int, bundle: str) -> None:
        selector = {"matchLabels": {"asked": "yes"}}
        body = configuration(port, bundle, timeoutSeconds=1, objectSelector=selector)
        await world.create(body)
        asked = asyncio.create_task(world.create(config_map("a", labels={"asked": "yes"})))
        async with asyncio.timeout(0.9):
            await world.create(config_map("b"))
        code, reason, message = await no(asked)
        assert (code, reason) == (500, "InternalError")
        assert message.startswith('Internal error occurred: failed calling webhook "hook.example.com": ')
        assert why in message

    told(tmp_path, behave, story, tls=tls)


def test_the_failure_policy_ignore_lets_the_request_go_on(tmp_path: Path) -> None:
    async def story(world: World, port: int, bundle: str) -> None:
        for kind in ("Validating", "Mutating"):
            await world.create(configuration(1, bundle, kind, failurePolicy="Ignore"))
        assert (await world.create(config_map("a")))["data"] == {"k": "v"}
        assert "apiserver_admission_webhook_fail_open_count" in METRICS.render().decode()

    told(tmp_path, silent, story)


def test_calls_of_one_webhook_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CALLS_PER_WEBHOOK", 2)
    running, most = 0, 0

    async def behave(reader: StreamReader, writer: StreamWriter) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await read_request(reader)
        await asyncio.sleep(0.02)
        running -= 1
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()

    async def story(world: World, port: int, bundle: str) -> None:
        client = WebhookClient(world.cache)
        config = {"url": f"https://127.0.0.1:{port}/x", "caBundle": bundle}
        await asyncio.gather(*(client.call(config, b"{}", 10) for _ in range(6)))
        assert most == 2

    told(tmp_path, behave, story)


def test_a_wrong_webhook_can_always_be_removed_and_does_not_stop_the_control_plane(tmp_path: Path) -> None:
    async def story(world: World, port: int, bundle: str) -> None:
        await world.create(configuration(1, bundle, timeoutSeconds=1))
        assert (await no(world.create(config_map("a"))))[0] == 500
        lease: Object = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "n"}, "spec": {}}
        await world.create(config_map("own"), SYSTEM)
        for space in ("kube-node-lease", "kube-system"):
            await world.create(namespace(space), SYSTEM)
            await world.registry.create(Target(LEASE, space), lease, ANN)
        assert (await no(world.registry.create(Target(LEASE, "default"), lease, ANN)))[0] == 500
        await world.registry.delete(Target(VALIDATING, "", "c"), ANN)
        await world.create(config_map("a"))

    told(tmp_path, silent, story)


def test_expensive_conditions_are_evaluated_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside: list[bool] = []

    def spy(conditions: Sequence[MatchCondition], variables: dict[str, Value], *budget: int) -> str | None:
        beside.append(current_thread() is not main_thread())
        return unmet_condition(conditions, variables, *budget)

    monkeypatch.setattr("situate.server.admission.webhooks.asking.unmet_condition", spy)
    text = "!object.data.all(one, object.data.all(other, size(one + other) > 0 && authorizer != null))"

    async def story(world: World, port: int, bundle: str) -> None:
        await world.create(configuration(1, bundle, matchConditions=[{"name": "few", "expression": text}]))
        await world.create(config_map("a"))
        assert beside == [False]
        await world.create(config_map("b") | {"data": {str(number): "" for number in range(60)}})
        assert beside == [False, False, True]

    told(tmp_path, silent, story)


def service(**spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "hook"},
        "spec": {"ports": [{"port": 443, "name": "https"}], "clusterIP": "None", **spec},
    }


def endpoints(port: int, address: str, *, ready: bool) -> Object:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"hook-{ready}".lower(), "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
        "ports": [{"name": "https", "port": port}],
    }


def test_a_service_is_resolved_to_a_ready_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[str] = []
    connect = asyncio.open_connection

    async def connected(host: str, port: int, **more: Any) -> Any:
        where.append(host)  # no endpoint may be on the loopback, where the webhook of this test is
        return await connect("127.0.0.1", port, **more)

    async def story(world: World, port: int, bundle: str) -> None:
        monkeypatch.setattr(asyncio, "open_connection", connected)
        client = WebhookClient(world.cache)
        config = {"service": {"name": "hook", "namespace": "default", "port": 443, "path": "/y"}, "caBundle": bundle}

        async def problem() -> str:
            with pytest.raises(CallError) as caught:
                await client.call(config, b"{}", 5)
            return str(caught.value)

        start = 'Post "https://hook.default.svc:443/y?timeout=5s": '
        assert await problem() == f'{start}service "hook" not found'
        await world.create(service())
        assert await problem() == f'{start}no endpoints available for service "hook"'
        await world.create(endpoints(port, "10.0.0.1", ready=False))
        assert await problem() == f'{start}no endpoints available for service "hook"'
        await world.create(endpoints(port, "10.0.0.2", ready=True))
        review = {"request": {"uid": "u"}}
        assert b'"allowed": true' in await client.call(config, json.dumps(review).encode(), 5)
        assert where == ["10.0.0.2"]
        await client.aclose()

    told(tmp_path, answering(lambda _: {}), story)
