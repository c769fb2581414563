"""The everyday calls: one key at a time, by compare-and-swap."""

from __future__ import annotations

from situate.store.contract import Store
from situate.store.entries import ABSENT, NO_LEASE, Entry, LeaseId, Revision
from situate.store.transactions import At, Delete, Outcome, Present, Put


async def get(store: Store, key: str, at: Revision | None = None) -> Entry | None:
    return (await store.read([key], at)).entries[0]


async def create(store: Store, key: str, value: bytes, lease: LeaseId = NO_LEASE) -> Outcome:
    """Refused if the key is there."""
    return await store.commit([At(key, ABSENT)], [Put(key, value, lease)])


async def update(store: Store, key: str, value: bytes, expected: Revision, lease: LeaseId = NO_LEASE) -> Outcome:
    """Refused unless the key was last written at the expected revision."""
    return await store.commit([At(key, expected)], [Put(key, value, lease)])


async def delete(store: Store, key: str, expected: Revision | None = None) -> Outcome:
    """Refused if the key is not there, or not as expected."""
    return await store.commit([Present(key) if expected is None else At(key, expected)], [Delete(key)])
