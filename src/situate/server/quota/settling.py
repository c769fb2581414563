"""Counts what a namespace uses, and writes it to the status of its ResourceQuotas.

`charging` keeps the accounts. They are counted from scratch for a quota whose spec is new, once more shortly after (for
what was on its way when the quota came), when this process begins to lead, and regularly, for what no account can
know, such as unreadable objects that were deleted. Writers of the namespace wait meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Final

from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.kinds.quantities import text_of, written
from situate.server.quota.charging import NEVER_COUNTED, QUOTA
from situate.server.quota.scopes import in_scope
from situate.server.quota.usage import Usage, Used, names_of, usage_of
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target, WatchOptions
from situate.server.resources import RESOURCES, Resource

WATCH: Final = WatchOptions(initial_events=True, resource_version_match="NotOlderThan")
AGAIN_S: Final = 1.0
"""The pause before a watch or a count that failed is tried again."""
SECOND_S: Final = 2.0
"""How long after the first count of a quota the second one comes."""
REGULARLY_S: Final = 300.0
"""Between two counts of a quota that does not change."""
AT_ONCE: Final = 256
"""Objects that are counted before other work gets its turn."""

_log = Log(__name__)
_Key = tuple[str, str]


class QuotaSettling:
    """`run` it until it is cancelled; on the leader only."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._due: dict[_Key, float] = {}
        self._told = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._settle_due())

    async def _follow(self) -> None:
        while True:
            try:
                async with aclosing(await self._registry.watch(Target(QUOTA), WATCH)) as events:
                    async for event in events:
                        if event.stored is not None:
                            self._seen(event.stored, gone=event.type == "DELETED", initial=event.type == "ADDED")
            except StatusError as error:
                _log.warning("Cannot watch ResourceQuotas; trying again", err=error.message)
            await asyncio.sleep(AGAIN_S)

    def _seen(self, held: StoredObject, *, gone: bool, initial: bool) -> None:
        key = (held.namespace, held.name)
        if gone:
            self._due.pop(key, None)
        elif initial or not is_settled(held.object(QUOTA)):
            self._put(key, 0.0)

    def _put(self, key: _Key, later_s: float) -> None:
        at = asyncio.get_running_loop().time() + later_s
        self._due[key] = min(at, self._due.get(key, at))
        self._told.set()

    async def _settle_due(self) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            for key in [key for key, at in self._due.items() if at <= now]:
                del self._due[key]
                await self._settle(key)
            self._told.clear()
            next_at = min(self._due.values(), default=None)
            wait_s = None if next_at is None else max(next_at - asyncio.get_running_loop().time(), 0.0)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._told.wait()

    async def _settle(self, key: _Key) -> None:
        held = self._registry.cache.get(QUOTA, *key)
        if held is None:
            return
        later_s = REGULARLY_S if is_settled(held.object(QUOTA)) else SECOND_S
        try:
            await settle(self._registry, *key)
        except StatusError as error:
            later_s = AGAIN_S
            _log.warning(
                "Cannot count for a ResourceQuota; trying again", namespace=key[0], name=key[1], err=error.message
            )
        self._put(key, later_s)


def is_settled(quota: Object) -> bool:
    """Whether its status is about its spec."""
    status = quota.get("status") or {}
    hard = quota.get("spec", {}).get("hard") or {}
    used = status.get("used") or {}
    return (status.get("hard") or {}) == hard and len(used) == len(hard) and all(name in used for name in hard)


async def settle(registry: Registry, namespace: str, name: str) -> None:
    """Count for one quota. Raises StatusError, 409 if others, such as other servers, changed its account meanwhile."""
    async with registry.quotas.lock(namespace):
        held = registry.cache.get(QUOTA, namespace, name)
        if held is None:
            return
        quota = held.object(QUOTA)
        hard = quota.get("spec", {}).get("hard") or {}
        counted = await _count(registry, quota, namespace, list(hard))
        was = (quota.get("status") or {}).get("used") or {}
        used = {one: _written(counted.get(one, Used(0)), was.get(one)) for one in hard}
        if is_settled(quota) and used == was:
            return
        change = _change({"hard": dict(hard), "used": used})
        await registry.modify(Target(QUOTA, namespace, name), change, SYSTEM, resource_version=str(held.revision))


def _written(now: Used, was: object) -> str:
    """As it is written already, if the amount is the same."""
    text = written(now.amount, binary=now.binary)
    other = written(now.amount, binary=not now.binary)
    return other if was is not None and text_of(was) == other else text


def _change(status: Object) -> Callable[[Object, StoredObject], Object]:
    return lambda quota, _stored: {**quota, "status": status}


async def _count(registry: Registry, quota: Object, namespace: str, names: list[str]) -> Usage:
    """What everything in the namespace uses. The caller holds the namespace's lock."""
    total: Usage = {}
    done = 0
    for resource in _counted(registry):
        wanted = names_of(resource, names)
        if not wanted:
            continue
        for held in list(registry.cache.all(resource, namespace)):
            done += 1
            if done % AT_ONCE == 0:
                await asyncio.sleep(0)
            obj = held.object(resource)
            if not in_scope(quota, resource, obj):
                continue
            used = usage_of(resource, obj)
            for name in wanted:
                if name in used:
                    known = total.get(name, Used(0))
                    total[name] = Used(known.amount + used[name].amount, known.binary or used[name].binary)
    return total


def _counted(registry: Registry) -> list[Resource]:
    """Each stored kind in one version."""
    found: dict[str, Resource] = {}
    for one in (*RESOURCES, *registry.custom.resources):
        if one.stored and one.namespaced and one.plural not in NEVER_COUNTED:
            found.setdefault(one.stored_as, one)
    return list(found.values())
