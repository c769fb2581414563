"""What the nodes really use, from the metrics API where a cluster has one (metrics-server, or another adapter).

The metrics API has no watch, so this asks, and the page is told what changed. A cluster without it is asked rarely.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from situate.core.model.quantity import QuantityError, milli_value, value
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.web.limits import USAGE_ABSENT_S, USAGE_S

NODE_METRICS: Final = "/apis/metrics.k8s.io/v1beta1/nodes"

Usage = Mapping[str, tuple[int, int]]
"""Millicores and bytes, by the node's name."""


class UsageReader:
    """`run` it until it is cancelled. `seen` is called with what the nodes use; with nothing, once nobody measures."""

    def __init__(self, client: Client, seen: Callable[[Usage], None]) -> None:
        self._client = client
        self._seen = seen

    async def run(self) -> None:
        known = False
        while True:
            try:
                found = usage_in(await self._client.request("GET", NODE_METRICS))
                if known or found:
                    self._seen(found)
                known = bool(found)
                wait_s = USAGE_S
            except ApiError as error:
                if known and not error.temporary:
                    known = False
                    self._seen({})
                wait_s = USAGE_S if known else USAGE_ABSENT_S
            await asyncio.sleep(wait_s)


def usage_in(body: bytes) -> dict[str, tuple[int, int]]:
    """The figures in a NodeMetricsList. What cannot be read is left out: others wrote it."""
    try:
        items = msgspec.json.decode(body)["items"]
        return dict(_readable(items))
    except (msgspec.DecodeError, KeyError, TypeError):
        return {}


def _readable(items: Iterable[Any]) -> Iterable[tuple[str, tuple[int, int]]]:
    for one in items:
        try:
            used = one["usage"]
            yield one["metadata"]["name"], (milli_value(used["cpu"]), value(used["memory"]))
        except (KeyError, TypeError, QuantityError):
            continue
