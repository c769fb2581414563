"""The smallest request that still fails, of one that did."""

import json
from typing import Any

from server.fuzz.client import Client, Failure, Request
from server.fuzz.objects import Generator, encode

TRIES = 60


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
