"""Charges ResourceQuotas for what is written in their namespace, in the same transaction.

`status.used` of a quota is an account: whoever creates, changes or deletes an object writes the new amounts together
with it, guarded by the revision of the quota. So two writers never spend the same rest, on however many servers. As in
kube-apiserver, `status.hard` is the limit: a new quota limits nothing until `settling` has counted for it. A write that
was on its way when the quota came is not charged; `settling` counts again for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakValueDictionary

from situate.server.errors import forbidden
from situate.server.kinds.quantities import nanos, text_of, written
from situate.server.objects import shown_name
from situate.server.quota.scopes import in_scope
from situate.server.quota.usage import Usage, Used, names_of, unspecified, usage_of
from situate.server.registry import codec
from situate.server.requests import Object, Target
from situate.server.resources import BY_KIND, Resource
from situate.store.entries import Revision
from situate.store.transactions import At, Guard, Put, Write

if TYPE_CHECKING:
    from situate.server.registry.cache import Cache

QUOTA: Final = BY_KIND["v1", "ResourceQuota"]
NEVER_COUNTED: Final = ("events", "placementdecisions")
EXCEEDED: Final = "exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}"
UNKNOWN: Final = "status unknown for quota: {quota}, resources: {names}"
FAILED: Final = "failed quota: {quota}: {why}"


class Charge(NamedTuple):
    """What a write changes in one quota's account."""

    name: str
    delta: Usage


class QuotaAccounts:
    """The accounts of one registry. Its locks spare the writers of a namespace most conflicts; the guards decide."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, namespace: str) -> asyncio.Lock:
        found = self._locks.get(namespace)
        if found is None:
            found = self._locks[namespace] = asyncio.Lock()
        return found

    def limits(self, target: Target) -> bool:
        """Whether a quota may count this object."""
        if self._cache.of(QUOTA).is_empty or not target.namespace or target.resource.plural in NEVER_COUNTED:
            return False
        return self._cache.count(QUOTA, target.namespace) > 0

    def charges(self, target: Target, old: Object | None, new: Object | None) -> list[Charge]:
        """The accounts that this write changes. Raises 403 for containers that do not specify what a quota limits."""
        found = []
        for held in self._cache.all(QUOTA, target.namespace):
            if target.resource is QUOTA and held.name == (new or old or {})["metadata"].get("name"):
                continue
            quota = held.object(QUOTA)
            names = names_of(target.resource, sorted(limit_names(quota)))
            if not names:
                continue
            if new is not None and old is None and in_scope(quota, target.resource, new):
                why = unspecified(new, names) if target.resource.kind == "Pod" else ""
                if why:
                    raise refusal(target, new, FAILED.format(quota=held.name, why=why))
            delta = _delta(_usage(quota, target.resource, old, names), _usage(quota, target.resource, new, names))
            if delta:
                found.append(Charge(held.name, delta))
        return found

    def check(self, target: Target, new: Object) -> None:
        """Raises 403 if a quota has no room for a new object, which is not charged."""
        self.write(target, self.charges(target, None, new), new, [], [], checked=True)

    def write(
        self,
        target: Target,
        charges: list[Charge],
        obj: Object,
        guards: list[Guard],
        writes: list[Write],
        *,
        checked: bool,
    ) -> None:
        """Add the new accounts to a transaction. Raises 403 if a quota is exceeded, unless this is not `checked`."""
        for name, changed in charges:
            held = self._cache.get(QUOTA, target.namespace, name)
            if held is None:
                continue
            quota = held.object(QUOTA)
            status = quota.get("status") or {}
            hard, used = status.get("hard") or {}, status.get("used") or {}
            delta = {key: more for key, more in changed.items() if key in hard}
            if checked:
                _check(target, obj, name, delta, hard, used)
            sums = {key: _sum(used.get(key, 0), more) for key, more in delta.items()}
            quota["status"] = {**status, "used": {**used, **sums}}
            guards.append(At(held.key, Revision(held.revision)))
            writes.append(Put(held.key, codec.encode(quota)))


def limit_names(quota: Object) -> dict[str, None]:
    """Those of its status, which count, and those of its spec, which will."""
    hard = (quota.get("status") or {}).get("hard") or {}
    return dict.fromkeys((*hard, *(quota.get("spec", {}).get("hard") or {})))


def refusal(target: Target, obj: Object, why: str) -> Exception:
    return forbidden(target.resource.plural, target.resource.group, shown_name(obj), why)


def _usage(quota: Object, resource: Resource, obj: Object | None, names: list[str]) -> Usage:
    if obj is None or not in_scope(quota, resource, obj):
        return {}
    used = usage_of(resource, obj)
    return {name: used[name] for name in names if name in used}


def _delta(before: Usage, after: Usage) -> Usage:
    delta = {}
    for name in dict.fromkeys((*before, *after)):
        was, now = before.get(name, Used(0)), after.get(name, Used(0))
        if was.amount != now.amount:
            delta[name] = Used(now.amount - was.amount, now.binary or was.binary)
    return delta


def _check(
    target: Target, obj: Object, name: str, delta: Usage, hard: Mapping[str, object], used: Mapping[str, object]
) -> None:
    more = {key: one for key, one in delta.items() if one.amount > 0}
    if unknown := [key for key in more if key not in used]:
        raise refusal(target, obj, UNKNOWN.format(quota=name, names=",".join(sorted(unknown))))
    over = [key for key in sorted(more) if nanos(used[key]) + more[key].amount > nanos(hard[key])]
    if over:
        why = EXCEEDED.format(
            quota=name,
            requested=",".join(f"{key}={written(more[key].amount, binary=more[key].binary)}" for key in over),
            used=",".join(f"{key}={text_of(used[key])}" for key in over),
            limited=",".join(f"{key}={text_of(hard[key])}" for key in over),
        )
        raise refusal(target, obj, why)


def _sum(used: object, more: Used) -> str:
    was = nanos(used)
    binary = text_of(used).endswith("i") if was else more.binary
    return written(max(was + more.amount, 0), binary=binary)
