"""Creating an object: name it, fill in what was left out, ask everybody, store it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from situate.server.asking import Caller, Object, Target, WriteOptions
from situate.server.kinds.metadata import validate_metadata
from situate.server.problems import already_exists, invalid
from situate.server.registry.held import Held
from situate.server.registry.keys import key_of
from situate.server.registry.means import Means
from situate.server.registry.metadata import begin, settle_place
from situate.server.registry.own import encode, own
from situate.server.registry.owners import writer_of
from situate.server.registry.transacting import Lost, commit, retried
from situate.server.registry.warning import warn
from situate.server.resources import BY_KIND
from situate.store.entries import ABSENT
from situate.store.transactions import At

__all__ = ["Again", "create_once", "created"]

Again: TypeAlias = Callable[[], Object]
"""Decodes a request once more."""
NAMESPACE: Final = BY_KIND["v1", "Namespace"]


async def created(
    means: Means, target: Target, obj: Object, caller: Caller, options: WriteOptions, *, again: Again | None = None
) -> Held:
    """409 if there is one of that name; a generated name is tried again. The given object is left as it is, unless it
    was decoded for this very request: then `again` decodes another, should it be needed."""
    mine: Object | None = obj
    if again is None:
        mine, again = None, partial(own, target.resource, encode(obj))

    async def attempt() -> Held | Lost:
        nonlocal mine
        first, mine = mine, None
        return await create_once(means, target, first or again(), caller, options)

    return await retried(means, target, attempt)


async def create_once(
    means: Means, target: Target, obj: Object, caller: Caller, options: WriteOptions, *, owned: bool = False
) -> Held | Lost:
    """Of an object that may be changed in place. `owned`: its managedFields are written already, by an apply."""
    resource, strategy = target.resource, means.strategy(target.resource)
    # 1. Where it is, and what is the server's to write.
    settle_place(obj, target)
    metadata = obj["metadata"]
    generated = not metadata.get("name") and bool(metadata.get("generateName"))
    now = means.now()
    begin(obj, uid=means.new_uid(), now=now, suffix=means.new_suffix, counted=strategy.counts_generation)
    # 2. What was left out; then whose the fields are. What admission adds is nobody's.
    strategy.default(obj)
    if not owned:
        entries = means.owners.of_new(obj, writer_of(resource, target.subresource, caller, options, now))
        if entries:
            metadata["managedFields"] = entries
    # 3. Everybody who has a say. Nothing may slip into a namespace that is asked to go meanwhile.
    space = means.cache.get(NAMESPACE, "", target.namespace) if resource.namespaced else None
    for each in means.admission:
        await each.admit("create", target, obj, None, caller)
    strategy.prepare_create(obj)
    causes = validate_metadata(obj, strategy.name_rule, resource.namespaced) + strategy.validate(obj)
    name = obj["metadata"].get("name", "")
    if causes:
        raise invalid(resource.kind, resource.group, name, causes)
    warn(strategy.warnings(obj))
    # 4. The store.
    if options.dry_run and means.cache.get(resource, target.namespace, name) is not None:
        raise already_exists(resource.plural, resource.group, name)
    done = await commit(means, target, name, None, None, obj, options.dry_run, unchanged=space)
    if isinstance(done, Lost) and not generated and At(key_of(resource, target.namespace, name), ABSENT) in done.failed:
        raise already_exists(resource.plural, resource.group, name)
    return done
