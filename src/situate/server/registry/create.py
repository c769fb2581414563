"""Creates an object: name it, default it, admit and validate it, store it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from situate.server.errors import already_exists, bad_request, invalid
from situate.server.kinds.metadata import validate_metadata
from situate.server.kinds.names import dns_label
from situate.server.registry.context import RegistryContext
from situate.server.registry.create_cache import AdmissionVersions, CreateTemplate, SplitBody, split_body, template_of
from situate.server.registry.keys import key_of
from situate.server.registry.managed_fields import writer_of
from situate.server.registry.metadata import (
    SET_BY_SERVER,
    VERSION_ON_CREATE,
    generated_name,
    init_metadata,
    set_name_and_namespace,
)
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.transaction import Conflicted, commit, retry_conflicts
from situate.server.registry.user_admission import AdmissionRequest, write_options
from situate.server.registry.warning import collecting, warn
from situate.server.requests import Caller, Object, Target, WriteOptions
from situate.server.resources import BY_KIND
from situate.store.entries import ABSENT
from situate.store.transactions import At

Decode: TypeAlias = Callable[[], Object]
"""Returns a new object that may be changed in place. Raises 400 if the body is not one."""
NAMESPACE: Final = BY_KIND["v1", "Namespace"]


async def create(
    context: RegistryContext, target: Target, body: bytes, decode: Decode, caller: Caller, options: WriteOptions
) -> StoredObject:
    """409 if the name is taken; a generated name is tried again. `body`: the object as JSON, or empty if the client
    sent another encoding."""
    strategy = context.strategy(target.resource)
    split = None
    if body and strategy.is_nameless is not None and not context.users.concerns(target.resource, "", "CREATE"):
        split = split_body(target, body, caller, options)

    async def attempt() -> StoredObject | Conflicted:
        if split is None:
            return await create_once(context, target, decode(), caller, options)
        template = find_template(context, target, split)
        if template is None:
            return await _create_in_full(context, target, split, decode, caller, options)
        made = await instantiate(context, target, split, template, caller)
        return await _store(context, target, made.object, made.value, made.namespace, options, generated=not split.name)

    return await retry_conflicts(context, target, attempt)


async def create_once(
    context: RegistryContext, target: Target, obj: Object, caller: Caller, options: WriteOptions
) -> StoredObject | Conflicted:
    """One attempt, with an object that may be changed in place."""
    generated = _is_generated(obj)
    namespace = await _prepare(context, target, obj, caller, options)
    await _check(context, target, obj, caller, options)
    return await _store(context, target, obj, None, namespace, options, generated=generated)


async def create_for_update(
    context: RegistryContext, target: Target, obj: Object, caller: Caller, options: WriteOptions, *, owned: bool
) -> StoredObject | Conflicted:
    """One attempt to create what an update or an apply did not find. `owned`: an apply has set its managedFields.

    Like kube-apiserver, it asks for the right to create after validation: an invalid object is a 422 for everybody.
    """
    namespace = await _prepare(context, target, obj, caller, options, owned=owned)
    if context.authorize_create is not None:
        context.authorize_create(caller, target)
    await _check(context, target, obj, caller, options)
    return await _store(context, target, obj, None, namespace, options, generated=False)


async def _create_in_full(
    context: RegistryContext,
    target: Target,
    split: SplitBody,
    decode: Decode,
    caller: Caller,
    options: WriteOptions,
) -> StoredObject | Conflicted:
    """Create an object the long way, and cache it as a template if it can be one."""
    versions, warnings = admission_versions(context, target), list[str]()
    try:
        with collecting() as warnings:
            obj = decode()
            generated = _is_generated(obj)
            namespace = await _prepare(context, target, obj, caller, options)
            await _check(context, target, obj, caller, options)
    finally:
        warn(warnings)
    nameless = context.strategy(target.resource).is_nameless
    if nameless is not None and nameless(obj) and not warnings:
        template = template_of(target.resource.stored_as, obj, versions)
        if template is not None:
            context.templates.put(split.shape, template)
    return await _store(context, target, obj, None, namespace, options, generated=generated)


class Instance(NamedTuple):
    """An object made from a template, ready to be stored."""

    object: Object
    value: bytes
    """Its stored form."""
    namespace: StoredObject | None
    """As admission saw it."""


async def instantiate(
    context: RegistryContext, target: Target, split: SplitBody, template: CreateTemplate, caller: Caller
) -> Instance:
    """Make and admit an object from a template."""
    name = split.name or generated_name(template.first["metadata"]["generateName"], context.new_suffix)
    uid = context.new_uid()
    obj = template.instantiate(name, uid, context.now(), split.labels)
    namespace = _namespace(context, target)
    for each, version in zip(context.admission, template.admission_versions, strict=True):
        if version is None:
            await each.admit("create", target, obj, None, caller)
    for check in context.checks:
        await check.check("create", target, obj, None, caller)
    value = template.encode(obj)
    context.cache.expect(
        key_of(target.resource, target.namespace, name), value, template.selector_values(uid, split.labels)
    )
    return Instance(obj, value, namespace)


def find_template(context: RegistryContext, target: Target, split: SplitBody) -> CreateTemplate | None:
    """The template of a body, if it can be made from one now."""
    template = context.templates.find(split.shape, admission_versions(context, target))
    return None if template is None or (split.name and dns_label(split.name)) else template


def admission_versions(context: RegistryContext, target: Target) -> AdmissionVersions:
    return tuple([each.version(target) for each in context.admission])


def _is_generated(obj: Object) -> bool:
    """Whether the server has to generate the name."""
    metadata = obj.get("metadata", {})
    return not metadata.get("name") and bool(metadata.get("generateName"))


def _namespace(context: RegistryContext, target: Target) -> StoredObject | None:
    """The namespace, read before admission checks it. It guards the write, so that nothing is created in a namespace
    that is deleted meanwhile."""
    return context.cache.get(NAMESPACE, "", target.namespace) if target.resource.namespaced else None


async def _prepare(
    context: RegistryContext, target: Target, obj: Object, caller: Caller, options: WriteOptions, *, owned: bool = False
) -> StoredObject | None:
    """Turn the requested object into the one to store, in place. Returns the namespace that admission checked."""
    resource, strategy = target.resource, context.strategy(target.resource)
    # 1. Namespace, and the fields that the server sets.
    set_name_and_namespace(obj, target)
    metadata = obj["metadata"]
    now = context.now()
    versioned = init_metadata(obj, uid=context.new_uid(), now=now, counted=strategy.counts_generation)
    # 2. Defaults, then managed fields. Nobody owns what admission adds.
    strategy.default(obj)
    strategy.stamp(obj, None, now)
    if not owned:
        entries = context.managed_fields.for_new(obj, writer_of(resource, target.subresource, caller, options, now))
        if entries:
            metadata["managedFields"] = entries
    # 3. Admission; then the name, if it is to be generated; then validation.
    namespace = _namespace(context, target)
    await _admit(context, target, obj, caller, options)
    if _is_generated(obj):
        metadata = obj["metadata"]
        metadata["name"] = generated_name(metadata["generateName"], context.new_suffix)
    strategy.prepare_create(obj)
    causes = validate_metadata(obj, strategy.name_rule, resource.namespaced, own_finalizers=strategy.own_finalizers)
    strategy.validate(obj, causes)
    if causes:
        raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)
    warn(strategy.warnings(obj))
    if versioned and not options.dry_run:  # for the store to refuse, in kube-apiserver
        raise bad_request(VERSION_ON_CREATE)
    return namespace


async def _admit(context: RegistryContext, target: Target, obj: Object, caller: Caller, options: WriteOptions) -> None:
    """Own plugins first, then those of users that may change the object, in place. These do not see what the server
    sets in a new object."""
    for each in context.admission:
        await each.admit("create", target, obj, None, caller)
    if not context.users.concerns(target.resource, target.subresource, "CREATE"):
        return
    metadata = obj["metadata"]
    own = {name: metadata[name] for name in SET_BY_SERVER if name in metadata}

    async def again(changed: Object) -> None:
        obj.clear()
        obj.update(changed)
        set_name_and_namespace(obj, target)
        for each in context.admission:
            await each.admit("create", target, obj, None, caller)
        request.object = {**obj}
        obj["metadata"] = {**obj["metadata"], **own}

    shown = {name: value for name, value in metadata.items() if name not in SET_BY_SERVER}
    request = _request(target, {**obj, "metadata": shown}, caller, options)
    await context.users.mutate(request, again)


async def _check(context: RegistryContext, target: Target, obj: Object, caller: Caller, options: WriteOptions) -> None:
    """Call the plugins that only check: own ones, then those of users."""
    for each in context.checks:
        await each.check("create", target, obj, None, caller)
    if context.users.concerns(target.resource, target.subresource, "CREATE"):
        await context.users.validate(_request(target, obj, caller, options))


def _request(target: Target, obj: Object, caller: Caller, options: WriteOptions) -> AdmissionRequest:
    named = Target(target.resource, target.namespace, obj["metadata"].get("name", ""), target.subresource)
    return AdmissionRequest(
        "CREATE", named, obj, None, caller, write_options("CreateOptions", options), options.dry_run
    )


async def _store(
    context: RegistryContext,
    target: Target,
    obj: Object,
    value: bytes | None,
    namespace: StoredObject | None,
    options: WriteOptions,
    *,
    generated: bool,
) -> StoredObject | Conflicted:
    """`value`: the stored form, if it is known."""
    resource, name = target.resource, obj["metadata"].get("name", "")
    if options.dry_run and context.cache.get(resource, target.namespace, name) is not None:
        raise already_exists(resource.plural, resource.group, name)
    done = await commit(context, target, name, None, None, obj, options.dry_run, unchanged=namespace, value=value)
    if (
        isinstance(done, Conflicted)
        and not generated
        and At(key_of(resource, target.namespace, name), ABSENT) in done.failed
    ):
        raise already_exists(resource.plural, resource.group, name)
    return done
