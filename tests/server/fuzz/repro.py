"""The smallest request that still fails, of one that did."""

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from server.faults.process import Plane
from server.faults.wire import NoAnswerError, Wire
from server.fuzz.bases import Json
from server.fuzz.client import Client, Failure, Request
from server.fuzz.objects import Generator, Subject, encode

TRIES = 60
ENDS_WITHIN_S = 2.0


def culprit(subjects: Sequence[Subject], ends: Callable[[Subject, Json], bool]) -> str:
    """The request that by itself ends a server, with as few of its changes as it takes; "" if none of these does."""
    for subject in reversed(subjects):
        if ends(subject, subject.body()):
            alone = ((one,) for one in subject.changes)
            fewest = next((one for one in alone if ends(subject, subject.body(one))), subject.changes)
            return str(Request("POST", subject.collection, encode(subject.body(fewest))))
    return ""


def ends_a_server(directory: Path, flags: Sequence[str]) -> Callable[[Subject, Json], bool]:
    """Whether a server of its own ends soon after it was sent an object."""
    count = iter(range(1_000_000))

    def ends(subject: Subject, body: Json) -> bool:
        with Plane(directory / f"alone-{next(count)}", *flags) as plane, Wire(plane.port, plane.admin()) as wire:
            with contextlib.suppress(NoAnswerError):
                wire.send("POST", "/api/v1/namespaces", {"metadata": {"name": subject.namespace}})
                wire.ask("POST", subject.collection, encode(body), ["Content-Type: application/json"])
            time.sleep(ENDS_WITHIN_S)
            return not plane.running

    return ends


async def smallest(client: Client, generator: Generator, failure: Failure, namespace: str) -> str:
    """Leaves out one part of the body after the other, as long as the answer is the same."""
    request = failure.request
    if request.body is None or failure.code == 0 or not request.body.startswith((b"{", b"[")):
        return str(request)
    known = len(client.tally.failures)
    await client.ask(Request("POST", "/api/v1/namespaces", encode({"metadata": {"name": namespace}})))
    try:
        body = json.loads(request.body)
    except ValueError:
        return str(request)
    tries = [TRIES]

    async def fails(value: Any) -> bool:
        tries[0] -= 1
        sent = Request(request.method, request.path, encode(value), request.content_type, request.accept)
        code, _ = await client.ask(sent)
        return code == failure.code

    if not await fails(body):
        return f"(not again by itself)\n{request}"
    changed = True
    while changed and tries[0] > 0:
        changed = False
        for less in _without_one(body):
            if tries[0] <= 0:
                break
            if await fails(less):
                body, changed = less, True
                break
    del client.tally.failures[known:]
    return str(Request(request.method, request.path, encode(body), request.content_type))


def _without_one(value: Any) -> list[Any]:
    """The same without one of its parts, the outer ones first."""
    found: list[Any] = []
    if isinstance(value, dict):
        found += [{key: one for key, one in value.items() if key != left} for left in value]
        found += [{**value, key: less} for key, one in value.items() for less in _without_one(one)]
    elif isinstance(value, list):
        found += [value[:at] + value[at + 1 :] for at in range(min(len(value), 20))]
        found += [
            [*value[:at], less, *value[at + 1 :]] for at, one in enumerate(value[:5]) for less in _without_one(one)
        ]
    return found
