"""The API without HTTP, for callers in the same process.

A write returns when it is durable and in the cache, so a caller reads its own writes. The registry does not change the
objects it is given. It raises StatusError only.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Final

from situate.server.apiextensions.served import CustomKinds
from situate.server.kinds import STRATEGIES
from situate.server.kinds.strategy import Strategy
from situate.server.quota.charging import QuotaAccounts
from situate.server.registry.batch import Creation, Modification, create_each, modify_each
from situate.server.registry.cache import Cache
from situate.server.registry.context import RegistryContext
from situate.server.registry.converted import shown
from situate.server.registry.converted_watch import ConvertedWatch
from situate.server.registry.create import Decode, create
from situate.server.registry.create_cache import CreateCache, RecentPods
from situate.server.registry.delete import delete, delete_collection
from situate.server.registry.event_leases import EventLeases
from situate.server.registry.list import list_objects, wait_for
from situate.server.registry.list_options import parse_resource_version
from situate.server.registry.managed_fields import ManagedFieldsCache
from situate.server.registry.metadata import random_suffix
from situate.server.registry.normalize import encode, normalize
from situate.server.registry.patch import PatchType, patch_object
from situate.server.registry.ports import (
    Admission,
    AdmissionCheck,
    AdmissionPlugin,
    AuthorizeCreate,
    TransactionExtension,
)
from situate.server.registry.stored_object import DeleteResult, ListResult, StoredObject, UpdateResult
from situate.server.registry.update import UpdatedObject, modify, update
from situate.server.registry.user_admission import NOBODY, UserAdmission
from situate.server.registry.warning import collecting, warn
from situate.server.registry.watch import open_shown_watch
from situate.server.registry.watchers import ObjectWatch
from situate.server.requests import Caller, DeleteOptions, ListOptions, Object, Target, WatchOptions, WriteOptions
from situate.store.contract import Store
from situate.store.transactions import Guard
from situate.wire.patching import FieldWriter

__all__ = ["BOOKMARKS_S", "PatchType", "Registry", "collecting", "warn"]

BOOKMARKS_S: Final = 60.0
"""How often watches get bookmarks."""

_LIST: Final = ListOptions()
_WATCH: Final = WatchOptions()
NODE_USER: Final = "system:node:"
"""The users of nodes' agents have this prefix."""
_WRITE: Final = WriteOptions()
_DELETE: Final = DeleteOptions()


class Registry:
    """Objects over a store. Call `start` before use. `aclose` ends all watches, and leaves the store open."""

    def __init__(
        self,
        store: Store,
        *,
        wall_ns: Callable[[], int],
        new_uid: Callable[[], str],
        cache: Cache | None = None,
        custom: CustomKinds | None = None,
        strategies: Mapping[str, Strategy] = STRATEGIES,
        admission: Sequence[AdmissionPlugin] = (),
        users: UserAdmission = NOBODY,
        extension: TransactionExtension | None = None,
        authorize_create: AuthorizeCreate | None = None,
        new_suffix: Callable[[], str] = random_suffix,
        bookmarks_s: float = BOOKMARKS_S,
    ) -> None:
        """`cache` and `custom`: those of the same store, if others, such as admission, need them first. `users`: the
        admission plugins that users configure."""
        self.cache: Final = Cache(store) if cache is None else cache
        self.custom: Final = CustomKinds(self.cache) if custom is None else custom
        """The kinds that CustomResourceDefinitions define."""
        self.new_uid: Final = new_uid
        self._store: Final = store
        self.quotas: Final = QuotaAccounts(self.cache)
        self._context = RegistryContext(
            store=store,
            cache=self.cache,
            strategies=strategies,
            admission=[one for one in admission if isinstance(one, Admission)],
            checks=[one for one in admission if isinstance(one, AdmissionCheck)],
            users=users,
            extension=extension,
            authorize_create=authorize_create,
            quotas=self.quotas,
            managed_fields=ManagedFieldsCache(),
            templates=CreateCache(),
            recent_pods=RecentPods(),
            event_leases=EventLeases(store),
            wall_ns=wall_ns,
            new_uid=new_uid,
            new_suffix=new_suffix,
        )
        self._bookmarks_s = bookmarks_s
        self._bookmarking: asyncio.Task[None] | None = None

    def fenced(self, fence: Callable[[], Guard]) -> Registry:
        """The same registry for a caller that may write only on a condition, such as that it leads. `fence` is called
        for each write: it returns the condition, which the transaction checks, or raises StatusError."""
        other = copy(self)
        other._context = replace(self._context, fences=(*self._context.fences, fence))
        return other

    async def start(self) -> None:
        """Load the store, then follow it."""
        await self.cache.start()
        self._bookmarking = asyncio.create_task(self._bookmark(), name="bookmarks")

    async def aclose(self) -> None:
        if self._bookmarking is not None:
            self._bookmarking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._bookmarking
        await self.cache.aclose()

    async def _bookmark(self) -> None:
        while True:
            await asyncio.sleep(self._bookmarks_s)
            self.cache.bookmark()

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, target: Target, resource_version: str = "") -> StoredObject:
        """The newest state; with a version, one that is not older; with "0", whatever the cache has."""
        if not resource_version:
            await self.cache.wait_until_fresh()
        else:
            await wait_for(self.cache, parse_resource_version(resource_version))
        stored = self.cache.get(target.resource, target.namespace, target.name)
        if stored is None:
            raise self.cache.missing(target.resource, target.namespace, target.name)
        return await shown(target.resource, stored)

    async def list(self, target: Target, options: ListOptions = _LIST) -> ListResult:
        return await list_objects(self.cache, self._store, target, options)

    async def watch(self, target: Target, options: WatchOptions = _WATCH) -> ObjectWatch | ConvertedWatch:
        """410 if the revision is too old. Close the watch, or read it to its end."""
        return await open_shown_watch(self.cache, target, options)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def create(self, target: Target, obj: Object, caller: Caller, options: WriteOptions = _WRITE) -> StoredObject:
        body = encode(obj)
        return await self.create_body(target, body, partial(normalize, target.resource, body), caller, options)

    async def create_each(
        self, creations: Sequence[Creation], caller: Caller, options: WriteOptions = _WRITE
    ) -> Sequence[StoredObject | Exception]:
        """`create` for several objects at once; each as it was stored, or what went wrong with it. See batch.py."""
        return await create_each(self._context, creations, caller, options)

    async def create_body(
        self, target: Target, body: bytes, decode: Decode, caller: Caller, options: WriteOptions
    ) -> StoredObject:
        """`create` with the object as the client sent it. `body` is JSON, or empty for another encoding; `decode`
        decodes it, as wire/schema does."""
        return await create(self._context, target, body, decode, caller, options)

    async def update(self, target: Target, obj: Object, caller: Caller, options: WriteOptions = _WRITE) -> StoredObject:
        """Subresources: "", "status" and "finalize"."""
        return (await self.replace(target, obj, caller, options)).stored

    async def replace(
        self, target: Target, obj: Object, caller: Caller, options: WriteOptions = _WRITE
    ) -> UpdateResult:
        """`update` for kinds that an update may create; says whether it did."""
        given = encode(obj)
        # Others write back the annotations that they read. An agent owns the status that it writes, and its report.
        owns_status = target.subresource == "status" and caller.name.startswith(NODE_USER)
        annotations = obj["metadata"].get("annotations") or {} if owns_status else {}

        def make(_old: Object | None, _writer: FieldWriter) -> UpdatedObject:
            return UpdatedObject(normalize(target.resource, given), annotations=annotations)

        may_create = not target.subresource and self._context.strategy(target.resource).creates_on_update
        return await update(self._context, target, make, caller, options, may_create=may_create)

    async def patch(
        self, target: Target, how: PatchType, patch: Any, caller: Caller, options: WriteOptions = _WRITE
    ) -> UpdateResult:
        """`patch` is decoded JSON. An apply creates a missing object."""
        return await patch_object(self._context, target, how, patch, caller, options)

    async def delete(self, target: Target, caller: Caller, options: DeleteOptions = _DELETE) -> DeleteResult:
        return await delete(self._context, target, caller, options)

    async def delete_collection(
        self, target: Target, caller: Caller, list_options: ListOptions = _LIST, delete_options: DeleteOptions = _DELETE
    ) -> ListResult:
        return await delete_collection(self._context, target, caller, list_options, delete_options)

    async def modify(
        self,
        target: Target,
        change: Callable[[Object, StoredObject], Object],
        caller: Caller,
        *,
        dry_run: bool = False,
        uid: str = "",
        resource_version: str = "",
        altered: bool = True,
        request: object | None = None,
    ) -> StoredObject:
        """Change an object on the server's own behalf, in one transaction with its extension: no admission, no
        validation.

        `change` gets a copy that it may change, and is called again after a conflict. What it raises is raised. Set
        `altered` to False if `change` leaves its argument alone and returns a new object. `request` goes to the
        transaction's extension as it is.
        """
        return await modify(
            self._context,
            target,
            change,
            dry_run=dry_run,
            uid=uid,
            resource_version=resource_version,
            altered=altered,
            request=request,
        )

    async def modify_each(self, changes: Sequence[Modification]) -> Sequence[Exception | None]:
        """`modify` for several objects at once; what went wrong with each. See batch.py."""
        return await modify_each(self._context, changes)
