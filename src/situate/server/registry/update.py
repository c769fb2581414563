"""Updates an object. Replace, patch and apply differ only in how they make the new object from the old one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from situate.server.errors import invalid
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.field_errors import invalid as invalid_value
from situate.server.kinds.metadata import validate_metadata_update
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.registry.codec import encode
from situate.server.registry.context import RegistryContext
from situate.server.registry.converted import is_outdated, shown
from situate.server.registry.create import create_for_update
from situate.server.registry.list_options import parse_resource_version
from situate.server.registry.managed_fields import writer_of
from situate.server.registry.metadata import (
    bump_generation,
    check_preconditions,
    keep_server_fields,
    restore_metadata_for_status,
    set_name_and_namespace,
)
from situate.server.registry.ports import StatusWrite
from situate.server.registry.stored_object import StoredObject, UpdateResult, read_stored
from situate.server.registry.transaction import Conflicted, commit, retry_conflicts
from situate.server.registry.user_admission import AdmissionRequest, write_options
from situate.server.registry.warning import warn
from situate.server.requests import Caller, Object, Target, WriteOptions
from situate.store.entries import Revision
from situate.wire.patching import FieldWriter, updated

NO_ANNOTATIONS: Final[Mapping[str, Any]] = {}


class UpdatedObject(NamedTuple):
    """A new object that shares nothing with the old one."""

    object: Object
    owned: bool = False
    """Its managedFields are already set."""
    uid_expected: bool = True
    """Its uid is a precondition; else it is one more immutable field."""
    annotations: Mapping[str, Any] = NO_ANNOTATIONS
    """What the client sets of them; those that an object merely has do not count."""


MakeUpdate: TypeAlias = Callable[[Object | None, FieldWriter], UpdatedObject]
"""Makes the new object from the old one, or from None if there is none. Called again after a conflict."""


async def update(
    context: RegistryContext,
    target: Target,
    make: MakeUpdate,
    caller: Caller,
    options: WriteOptions,
    *,
    may_create: bool,
) -> UpdateResult:
    """Write the object that `make` returns. 404 if there is none and it may not be created, 409 for a failed
    precondition."""

    async def attempt() -> UpdateResult | Conflicted:
        stored = context.cache.get(target.resource, target.namespace, target.name)
        writer = writer_of(target.resource, target.subresource, caller, options, context.now())
        if stored is not None:
            done = await _update_once(context, target, stored, make, writer, caller, options)
        elif may_create:
            made = make(None, writer)
            done = await create_for_update(context, target, made.object, caller, options, owned=made.owned)
        else:
            raise context.cache.missing(target.resource, target.namespace, target.name)
        return done if isinstance(done, Conflicted) else UpdateResult(done, created=stored is None)

    return await retry_conflicts(context, target, attempt)


async def _update_once(
    context: RegistryContext,
    target: Target,
    stored: StoredObject,
    make: MakeUpdate,
    writer: FieldWriter,
    caller: Caller,
    options: WriteOptions,
) -> StoredObject | Conflicted:
    resource, strategy = target.resource, context.strategy(target.resource)
    # 1. The new object, and the preconditions.
    is_current = not is_outdated(resource, stored)
    stored = await shown(resource, stored)
    old = stored.object(resource)
    made = make(old, writer)
    new = made.object
    set_name_and_namespace(new, target)
    has_version = bool(new["metadata"].get("resourceVersion"))
    _check_update_preconditions(target, strategy, made, stored)
    # 2. Defaults and managed fields.
    strategy.default(new)
    strategy.stamp(new, old, context.now())
    if not made.owned:
        new = updated(old, new, writer)
    new["metadata"]["resourceVersion"] = str(stored.revision)
    # 3. Admission and validation.
    await _admit(context, target, new, old, caller, options, has_version=has_version)
    _prepare(target, strategy, new, old)
    causes = validate_metadata_update(new, old, own_finalizers=strategy.own_finalizers)
    _validate(target.subresource, strategy, new, old, causes)
    if causes:
        raise invalid(resource.kind, resource.group, stored.name, causes)
    if not target.subresource:
        warn(strategy.update_warnings(new, old) if strategy.update_warnings else strategy.warnings(new))
    await _check(context, target, new, old, caller, options)
    # 4. Write, if anything changed.
    if last_finalizer_removed(new, old, resource.kind):
        return await _delete_finalized(context, target, stored, old, new, options.dry_run)
    if is_current and _same(new, old):
        return await _confirmed(context, target, stored)
    request = StatusWrite(made.annotations) if made.annotations and target.subresource == "status" else None
    return await commit(context, target, stored.name, stored, old, new, options.dry_run, request=request)


async def _admit(
    context: RegistryContext,
    target: Target,
    new: Object,
    old: Object,
    caller: Caller,
    options: WriteOptions,
    *,
    has_version: bool,
) -> None:
    """Own plugins first, then those of users that may change the new object, in place. `has_version`: the client has
    given one, which these see."""

    for each in context.admission:
        await each.admit("update", target, new, old, caller)
    if not context.users.concerns(target.resource, target.subresource, "UPDATE"):
        return

    async def again(changed: Object) -> None:
        new.clear()
        new.update(changed)
        set_name_and_namespace(new, target)
        for each in context.admission:
            await each.admit("update", target, new, old, caller)
        request.object = {**new}

    version = new["metadata"]["resourceVersion"]
    shown = {**new}
    if not has_version:
        shown["metadata"] = {name: value for name, value in new["metadata"].items() if name != "resourceVersion"}
    request = _request(target, shown, old, caller, options)
    await context.users.mutate(request, again)
    new["metadata"]["resourceVersion"] = version


async def _check(
    context: RegistryContext, target: Target, new: Object, old: Object, caller: Caller, options: WriteOptions
) -> None:
    """Call the plugins that only check: own ones, then those of users."""
    for each in context.checks:
        await each.check("update", target, new, old, caller)
    if context.users.concerns(target.resource, target.subresource, "UPDATE"):
        await context.users.validate(_request(target, new, old, caller, options))


def _request(target: Target, new: Object, old: Object, caller: Caller, options: WriteOptions) -> AdmissionRequest:
    return AdmissionRequest(
        "UPDATE", target, new, old, caller, write_options("UpdateOptions", options), options.dry_run
    )


async def _confirmed(context: RegistryContext, target: Target, stored: StoredObject) -> StoredObject | Conflicted:
    """The object, if nobody has changed it since: a write that changes nothing may be one that another server's write
    makes necessary, which is not in this cache yet."""
    await context.cache.wait_until_fresh()
    newest = context.cache.get(target.resource, target.namespace, stored.name)
    if newest is not None and newest.revision == stored.revision:
        return stored
    return Conflicted(Revision(stored.revision), (), ())


def _check_update_preconditions(target: Target, strategy: Strategy, made: UpdatedObject, stored: StoredObject) -> None:
    metadata = made.object["metadata"]
    version = metadata.get("resourceVersion", "")
    if not parse_resource_version(version) and not strategy.unconditional_update:
        cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(target.resource.plural, target.resource.group, stored.name, [cause])
    check_preconditions(
        target, "" if version == "0" else version, metadata.get("uid", "") if made.uid_expected else "", stored
    )


def _prepare(target: Target, strategy: Strategy, new: Object, old: Object) -> None:
    keep_server_fields(new, old)
    match target.subresource:
        case "status":
            strategy.prepare_status(new, old)
            restore_metadata_for_status(new, old, target.resource)
        case "finalize":
            keep_status(new, old)
        case "approval":
            strategy.prepare_approval(new, old)
            restore_metadata_for_status(new, old, target.resource)
        case other if other in strategy.subresources:
            strategy.subresources[other].prepare(new, old)
            restore_metadata_for_status(new, old, target.resource)
            if strategy.counts_generation:
                bump_generation(new, old, target.resource)
        case _:
            strategy.prepare_update(new, old)
            if strategy.counts_generation:
                bump_generation(new, old, target.resource)


def _validate(subresource: str, strategy: Strategy, new: Object, old: Object, causes: Causes) -> None:
    match subresource:
        case "status":
            strategy.validate_status(new, old, causes)
        case "finalize":
            strategy.validate_finalize(new, causes)
        case other if other in strategy.subresources:
            strategy.subresources[other].validate(new, old, causes)
        case _:
            strategy.validate_update(new, old, causes)


def last_finalizer_removed(new: Object, old: Object, kind: str) -> bool:
    """Whether the object is being deleted and its last finalizer is gone, so that nothing keeps it."""
    was = old["metadata"]
    if new["metadata"].get("finalizers") or "deletionTimestamp" not in was:
        return False
    if kind == "Namespace" and new.get("spec", {}).get("finalizers"):
        return False
    return not was.get("deletionGracePeriodSeconds")


async def _delete_finalized(
    context: RegistryContext,
    target: Target,
    stored: StoredObject,
    old: Object,
    new: Object,
    dry_run: bool,
    request: object | None = None,
) -> StoredObject | Conflicted:
    done = await commit(context, target, stored.name, stored, old, None, dry_run, request=request)
    return done if isinstance(done, Conflicted) else read_stored(stored.key, encode(new), done.revision)


def _same(new: Object, old: Object) -> bool:
    """Whether nothing differs but times in managedFields."""
    if new.keys() != old.keys() or any(new[name] != old[name] for name in new if name != "metadata"):
        return False
    return _without_times(new["metadata"]) == _without_times(old["metadata"])


def _without_times(metadata: Object) -> Object:
    managed = metadata.get("managedFields")
    if not managed:
        return metadata
    entries = [{name: value for name, value in entry.items() if name != "time"} for entry in managed]
    return {**metadata, "managedFields": entries}


# -- changes by the server itself --------------------------------------------------------------------------------------


async def modify(
    context: RegistryContext,
    target: Target,
    change: Callable[[Object, StoredObject], Object],
    *,
    dry_run: bool = False,
    uid: str = "",
    resource_version: str = "",
    altered: bool = True,
    request: object | None = None,
) -> StoredObject:
    """Read, change, write, without admission or validation: this is the server's own change."""

    async def attempt() -> StoredObject | Conflicted:
        stored = context.cache.get(target.resource, target.namespace, target.name)
        if stored is None:
            raise context.cache.missing(target.resource, target.namespace, target.name)
        check_preconditions(target, resource_version, uid, stored)
        stored = await shown(target.resource, stored)
        old = (None if altered else context.recent_pods.take(stored)) or stored.object(target.resource)
        new = change(stored.object(target.resource) if altered else old, stored)
        if last_finalizer_removed(new, old, target.resource.kind):
            return await _delete_finalized(context, target, stored, old, new, dry_run, request)
        if new == old:
            return await _confirmed(context, target, stored)
        return await commit(context, target, stored.name, stored, old, new, dry_run, request=request)

    return await retry_conflicts(context, target, attempt)
