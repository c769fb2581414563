"""Several commits at once, for stores that have no cheaper way than as many calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from situate.store.contract import Store
from situate.store.errors import StoreError
from situate.store.transactions import Guard, Outcome, Write


async def commit_concurrently(
    store: Store, transactions: Sequence[tuple[Iterable[Guard], Iterable[Write]]]
) -> Sequence[Outcome | StoreError]:
    """See `Store.commit_each`."""
    return await asyncio.gather(*(_outcome(store, *one) for one in transactions))


async def _outcome(store: Store, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome | StoreError:
    try:
        return await store.commit(guards, writes)
    except StoreError as error:
        return error
