"""Creating an object: name it, fill in what was left out, ask everybody, store it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from situate.server.errors import already_exists, invalid
from situate.server.kinds.metadata import validate_metadata
from situate.server.kinds.naming import dns_label
from situate.server.registry.context import RegistryContext
from situate.server.registry.create_cache import AdmissionVersions, CreateTemplate, SplitBody, split_body, template_of
from situate.server.registry.keys import key_of
from situate.server.registry.managed_fields import writer_of
from situate.server.registry.metadata import generated_name, init_metadata, set_name_and_namespace
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.transaction import Conflicted, commit, retry_conflicts
from situate.server.registry.warning import collecting, warn
from situate.server.requests import Caller, Object, Target, WriteOptions
from situate.server.resources import BY_KIND
from situate.store.entries import ABSENT
from situate.store.transactions import At

__all__ = ["Decode", "create_once", "create"]

Decode: TypeAlias = Callable[[], Object]
"""A new object, of which everything may be changed; 400 for what is no such object."""
NAMESPACE: Final = BY_KIND["v1", "Namespace"]


async def create(
    context: RegistryContext, target: Target, body: bytes, decode: Decode, caller: Caller, options: WriteOptions
) -> StoredObject:
    """409 if there is one of that name; a generated name is tried again. `body`: the object in JSON; "" if it came in
    another form."""
    strategy = context.strategy(target.resource)
    split = split_body(target, body, caller, options) if body and strategy.is_nameless is not None else None

    async def attempt() -> StoredObject | Conflicted:
        if split is None:
            return await create_once(context, target, decode(), caller, options)
        versions = tuple([each.version(target) for each in context.admission])
        template = context.templates.find(split.shape, versions)
        if template is None or (split.name and dns_label(split.name)):
            return await _create_first(context, target, split, versions, decode, caller, options)
        return await _create_like(context, target, split, template, caller, options)

    return await retry_conflicts(context, target, attempt)


async def create_once(
    context: RegistryContext, target: Target, obj: Object, caller: Caller, options: WriteOptions, *, owned: bool = False
) -> StoredObject | Conflicted:
    """Of an object that may be changed in place. `owned`: its managedFields are written already, by an apply."""
    generated = _is_generated(obj)
    space = await _make(context, target, obj, caller, options, owned=owned)
    return await _store(context, target, obj, None, space, options, generated=generated)


async def _create_first(
    context: RegistryContext,
    target: Target,
    split: SplitBody,
    versions: AdmissionVersions,
    decode: Decode,
    caller: Caller,
    options: WriteOptions,
) -> StoredObject | Conflicted:
    """One that may be the first of many."""
    warnings: list[str] = []
    try:
        with collecting() as warnings:
            obj = decode()
            generated = _is_generated(obj)
            space = await _make(context, target, obj, caller, options)
    finally:
        warn(warnings)
    nameless = context.strategy(target.resource).is_nameless
    if nameless is not None and nameless(obj) and not warnings:
        template = template_of(target.resource.stored_as, obj, versions)
        if template is not None:
            context.templates.put(split.shape, template)
    return await _store(context, target, obj, None, space, options, generated=generated)


async def _create_like(
    context: RegistryContext,
    target: Target,
    split: SplitBody,
    template: CreateTemplate,
    caller: Caller,
    options: WriteOptions,
) -> StoredObject | Conflicted:
    """One more of those that differ in their names."""
    name = split.name or generated_name(template.first["metadata"]["generateName"], context.new_suffix)
    uid = context.new_uid()
    obj = template.instantiate(name, uid, context.now())
    space = _space(context, target)
    for each, version in zip(context.admission, template.admission_versions, strict=True):
        if version is None:
            await each.admit("create", target, obj, None, caller)
    value = template.encode(obj)
    context.cache.expect(key_of(target.resource, target.namespace, name), value, template.selector_values(uid))
    return await _store(context, target, obj, value, space, options, generated=not split.name)


def _is_generated(obj: Object) -> bool:
    """Whether its name is still to be generated."""
    metadata = obj.get("metadata", {})
    return not metadata.get("name") and bool(metadata.get("generateName"))


def _space(context: RegistryContext, target: Target) -> StoredObject | None:
    """Nothing may slip into a namespace that is asked to go meanwhile: read before admission looks at it, it guards the
    write."""
    return context.cache.get(NAMESPACE, "", target.namespace) if target.resource.namespaced else None


async def _make(
    context: RegistryContext, target: Target, obj: Object, caller: Caller, options: WriteOptions, *, owned: bool = False
) -> StoredObject | None:
    """Turn what was asked for into what is stored, in place; the namespace that it was judged by."""
    resource, strategy = target.resource, context.strategy(target.resource)
    # 1. Where it is, and what is the server's to write.
    set_name_and_namespace(obj, target)
    metadata = obj["metadata"]
    now = context.now()
    init_metadata(obj, uid=context.new_uid(), now=now, suffix=context.new_suffix, counted=strategy.counts_generation)
    # 2. What was left out; then whose the fields are. What admission adds is nobody's.
    strategy.default(obj)
    if not owned:
        entries = context.managed_fields.for_new(obj, writer_of(resource, target.subresource, caller, options, now))
        if entries:
            metadata["managedFields"] = entries
    # 3. Everybody who has a say.
    space = _space(context, target)
    for each in context.admission:
        await each.admit("create", target, obj, None, caller)
    strategy.prepare_create(obj)
    causes = validate_metadata(obj, strategy.name_rule, resource.namespaced)
    strategy.validate(obj, causes)
    if causes:
        raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)
    warn(strategy.warnings(obj))
    return space


async def _store(
    context: RegistryContext,
    target: Target,
    obj: Object,
    value: bytes | None,
    space: StoredObject | None,
    options: WriteOptions,
    *,
    generated: bool,
) -> StoredObject | Conflicted:
    """`value`: its stored form, if that is known."""
    resource, name = target.resource, obj["metadata"].get("name", "")
    if options.dry_run and context.cache.get(resource, target.namespace, name) is not None:
        raise already_exists(resource.plural, resource.group, name)
    done = await commit(context, target, name, None, None, obj, options.dry_run, unchanged=space, value=value)
    if (
        isinstance(done, Conflicted)
        and not generated
        and At(key_of(resource, target.namespace, name), ABSENT) in done.failed
    ):
        raise already_exists(resource.plural, resource.group, name)
    return done
