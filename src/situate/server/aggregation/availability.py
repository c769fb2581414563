"""Runs beside the API: asks the API servers behind APIServices what they serve, and writes the condition Available.

Several servers on one store may run it at once: each has its own list of what is served, and a condition is written
only when it changes. An APIService that cannot be handled is logged; the others go on.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Final, NamedTuple

from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.admission.webhooks.client import CallError
from situate.server.admission.webhooks.endpoints import UnresolvedError
from situate.server.aggregation.apis import (
    AVAILABLE,
    SERVICES,
    AggregatedApi,
    AggregatedApis,
    api_of,
    available,
    conditions_of,
    is_remote,
)
from situate.server.aggregation.connector import ApiServerConnector, user_headers
from situate.server.aggregation.discovered import Discovered, DiscoveryError, read_resources
from situate.server.errors import StatusError
from situate.server.kubelet.connection import AnswerError, ask, read_body
from situate.server.objects import Object
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import APISERVER, Caller, Target, WatchOptions
from situate.store.errors import StoreError
from situate.wire.bodies import seconds_time

CHECK_S: Final = 5.0
"""How often each server is asked."""
PAUSE_S: Final = 1.0
"""Between two rounds, however often APIServices change: a round's own writes are changes, too."""
ANSWER_S: Final = 5.0
CHECKS: Final = 32
"""Servers that are asked at the same time."""
ANSWER_BYTES: Final = 1 << 20
AGGREGATOR: Final = Caller("system:kube-aggregator", ("system:masters",))
PASSED: Final = "all checks passed"
SERVED_HERE: Final = "situate serves this group and version itself, and asks no other server"
WATCH: Final = WatchOptions()

_log = Log(__name__)


class Availability(NamedTuple):
    status: str
    reason: str
    message: str


class AvailabilityController:
    def __init__(
        self, registry: Registry, apis: AggregatedApis, connector: ApiServerConnector, wall_ns: Callable[[], int]
    ) -> None:
        self._registry = registry
        self._apis = apis
        self._connector = connector
        self._wall_ns = wall_ns
        self._slots = asyncio.Semaphore(CHECKS)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            woken = asyncio.Event()
            group.create_task(self._watch(woken))
            while True:
                await self.look()
                await asyncio.sleep(PAUSE_S)
                try:
                    async with asyncio.timeout(CHECK_S):
                        await woken.wait()
                except TimeoutError:
                    continue
                finally:
                    woken.clear()

    async def _watch(self, woken: asyncio.Event) -> None:
        while True:
            try:
                async with aclosing(await self._registry.watch(Target(SERVICES), WATCH)) as events:
                    async for event in events:
                        if event.type != "BOOKMARK":
                            woken.set()
            except StatusError as error:
                _log.warning("APIServices cannot be watched; trying again", err=error.message)
            await asyncio.sleep(PAUSE_S)

    async def look(self) -> None:
        """Check all APIServices of other servers once."""
        services = list(self._registry.cache.all(SERVICES))
        self._apis.forget_others(one.name for one in services)
        await asyncio.gather(*map(self._check, services))

    async def _check(self, stored: StoredObject) -> None:
        obj = stored.object(SERVICES)
        if "service" not in obj["spec"]:
            return
        try:
            async with self._slots:
                found = await self._condition(obj)
            if found != _current(obj):
                await self._write(stored, found)
        except (StatusError, StoreError) as error:
            _log.warning("The status of an APIService cannot be written", name=stored.name, err=error)
        except Exception as error:  # noqa: BLE001 - whatever is odd about this APIService, the others go on
            _log.error("An APIService cannot be checked", name=stored.name, err=describe_error(error))

    async def _condition(self, obj: Object) -> Availability:
        if not is_remote(obj):
            return Availability("True", "Local", SERVED_HERE)
        api = api_of(obj)
        try:
            async with asyncio.timeout(ANSWER_S):
                self._apis.discover(api.name, await self._discover(api))
        except UnresolvedError as error:
            return Availability("False", "EndpointsNotFound", str(error))
        except (AnswerError, CallError, DiscoveryError, OSError, TimeoutError) as error:
            message = f"failing or missing response from https://{_host(obj)}{api.path}: {_why(error)}"
            return Availability("False", "FailedDiscoveryCheck", message)
        return Availability("True", "Passed", PASSED)

    async def _discover(self, api: AggregatedApi) -> Discovered:
        connection = await self._connector.connect(api)
        try:
            headers = [("Accept", "application/json"), ("Connection", "close"), *user_headers(AGGREGATOR)]
            head = await ask(connection, "GET", api.path, headers)
            if head.code != HTTPStatus.OK:
                raise DiscoveryError(f"bad status: {head.code}")
            body = b""
            async for piece in read_body(connection.reader, head):
                body += piece
                if len(body) > ANSWER_BYTES:
                    raise DiscoveryError(f"the answer is longer than {ANSWER_BYTES} bytes")
        finally:
            connection.abort()
        return read_resources(body, f"{api.group}/{api.version}")

    async def _write(self, stored: StoredObject, found: Availability) -> None:
        now = seconds_time(self._wall_ns())

        def change(obj: Object, _stored: StoredObject) -> Object:
            old: Object = available(obj) or {}
            since = old.get("lastTransitionTime") if old.get("status") == found.status else now
            new = {"type": AVAILABLE, **found._asdict(), "lastTransitionTime": since}
            others = [one for one in conditions_of(obj) if one.get("type") != AVAILABLE]
            return {**obj, "status": {"conditions": [*others, new]}}

        target = Target(SERVICES, "", stored.name)
        await self._registry.modify(target, change, APISERVER, uid=stored.uid, resource_version=str(stored.revision))
        _log.info(
            "The availability of an APIService changed", name=stored.name, status=found.status, reason=found.reason
        )


def _current(obj: Object) -> Availability | None:
    one = available(obj)
    return None if one is None else Availability(one.get("status", ""), one.get("reason", ""), one.get("message", ""))


def _why(error: Exception) -> str:
    """Without the address: each look takes an endpoint at random, and a message that changes is written each time."""
    number = error.errno if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
    if number is not None and number > 0:
        return os.strerror(number).lower()
    return str(error) or "no answer in time"


def _host(obj: Object) -> str:
    service = obj["spec"]["service"]
    return f"{service.get('name', '')}.{service.get('namespace', '')}.svc:{service.get('port', '')}"
