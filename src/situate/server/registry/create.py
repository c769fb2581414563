"""Creating an object: name it, fill in what was left out, ask everybody, store it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from situate.server.errors import already_exists, invalid
from situate.server.kinds.metadata import validate_metadata
from situate.server.kinds.naming import dns_label
from situate.server.registry.context import Means
from situate.server.registry.create_cache import Alike, Bases, Mould, alike, mould_of
from situate.server.registry.keys import key_of
from situate.server.registry.managed_fields import writer_of
from situate.server.registry.metadata import begin, generated_name, settle_place
from situate.server.registry.stored_object import Held
from situate.server.registry.transaction import Lost, commit, retried
from situate.server.registry.warning import collecting, warn
from situate.server.requests import Caller, Object, Target, WriteOptions
from situate.server.resources import BY_KIND
from situate.store.entries import ABSENT
from situate.store.transactions import At

__all__ = ["Decode", "create_once", "created"]

Decode: TypeAlias = Callable[[], Object]
"""A new object, of which everything may be changed; 400 for what is no such object."""
NAMESPACE: Final = BY_KIND["v1", "Namespace"]


async def created(
    means: Means, target: Target, body: bytes, decode: Decode, caller: Caller, options: WriteOptions
) -> Held:
    """409 if there is one of that name; a generated name is tried again. `body`: the object in JSON; "" if it came in
    another form."""
    strategy = means.strategy(target.resource)
    looks = alike(target, body, caller, options) if body and strategy.is_nameless is not None else None

    async def attempt() -> Held | Lost:
        if looks is None:
            return await create_once(means, target, decode(), caller, options)
        bases = tuple([each.basis(target) for each in means.admission])
        mould = means.moulds.find(looks.shape, bases)
        if mould is None or (looks.name and dns_label(looks.name)):
            return await _create_first(means, target, looks, bases, decode, caller, options)
        return await _create_like(means, target, looks, mould, caller, options)

    return await retried(means, target, attempt)


async def create_once(
    means: Means, target: Target, obj: Object, caller: Caller, options: WriteOptions, *, owned: bool = False
) -> Held | Lost:
    """Of an object that may be changed in place. `owned`: its managedFields are written already, by an apply."""
    generated = _is_generated(obj)
    space = await _make(means, target, obj, caller, options, owned=owned)
    return await _store(means, target, obj, None, space, options, generated=generated)


async def _create_first(
    means: Means, target: Target, looks: Alike, bases: Bases, decode: Decode, caller: Caller, options: WriteOptions
) -> Held | Lost:
    """One that may be the first of many."""
    warnings: list[str] = []
    try:
        with collecting() as warnings:
            obj = decode()
            generated = _is_generated(obj)
            space = await _make(means, target, obj, caller, options)
    finally:
        warn(warnings)
    nameless = means.strategy(target.resource).is_nameless
    if nameless is not None and nameless(obj) and not warnings:
        mould = mould_of(target.resource.stored_as, obj, bases)
        if mould is not None:
            means.moulds.keep(looks.shape, mould)
    return await _store(means, target, obj, None, space, options, generated=generated)


async def _create_like(
    means: Means, target: Target, looks: Alike, mould: Mould, caller: Caller, options: WriteOptions
) -> Held | Lost:
    """One more of those that differ in their names."""
    name = looks.name or generated_name(mould.first["metadata"]["generateName"], means.new_suffix)
    uid = means.new_uid()
    obj = mould.cast(name, uid, means.now())
    space = _space(means, target)
    for each, basis in zip(means.admission, mould.bases, strict=True):
        if basis is None:
            await each.admit("create", target, obj, None, caller)
    value = mould.encoded(obj)
    means.cache.expect(key_of(target.resource, target.namespace, name), value, mould.seen_of(uid))
    return await _store(means, target, obj, value, space, options, generated=not looks.name)


def _is_generated(obj: Object) -> bool:
    """Whether its name is still to be generated."""
    metadata = obj.get("metadata", {})
    return not metadata.get("name") and bool(metadata.get("generateName"))


def _space(means: Means, target: Target) -> Held | None:
    """Nothing may slip into a namespace that is asked to go meanwhile: read before admission looks at it, it guards the
    write."""
    return means.cache.get(NAMESPACE, "", target.namespace) if target.resource.namespaced else None


async def _make(
    means: Means, target: Target, obj: Object, caller: Caller, options: WriteOptions, *, owned: bool = False
) -> Held | None:
    """Turn what was asked for into what is stored, in place; the namespace that it was judged by."""
    resource, strategy = target.resource, means.strategy(target.resource)
    # 1. Where it is, and what is the server's to write.
    settle_place(obj, target)
    metadata = obj["metadata"]
    now = means.now()
    begin(obj, uid=means.new_uid(), now=now, suffix=means.new_suffix, counted=strategy.counts_generation)
    # 2. What was left out; then whose the fields are. What admission adds is nobody's.
    strategy.default(obj)
    if not owned:
        entries = means.owners.of_new(obj, writer_of(resource, target.subresource, caller, options, now))
        if entries:
            metadata["managedFields"] = entries
    # 3. Everybody who has a say.
    space = _space(means, target)
    for each in means.admission:
        await each.admit("create", target, obj, None, caller)
    strategy.prepare_create(obj)
    causes = validate_metadata(obj, strategy.name_rule, resource.namespaced) + strategy.validate(obj)
    if causes:
        raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)
    warn(strategy.warnings(obj))
    return space


async def _store(
    means: Means,
    target: Target,
    obj: Object,
    value: bytes | None,
    space: Held | None,
    options: WriteOptions,
    *,
    generated: bool,
) -> Held | Lost:
    """`value`: its stored form, if that is known."""
    resource, name = target.resource, obj["metadata"].get("name", "")
    if options.dry_run and means.cache.get(resource, target.namespace, name) is not None:
        raise already_exists(resource.plural, resource.group, name)
    done = await commit(means, target, name, None, None, obj, options.dry_run, unchanged=space, value=value)
    if isinstance(done, Lost) and not generated and At(key_of(resource, target.namespace, name), ABSENT) in done.failed:
        raise already_exists(resource.plural, resource.group, name)
    return done
