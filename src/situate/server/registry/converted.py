"""Shows stored objects of custom kinds in a version to which a webhook has to convert them.

A converted object is a StoredObject whose value is what would be stored in the wanted version, so that everything that
reads stored objects reads it like any other. Whoever takes an object out of the cache for a request converts it here
first; a kind without such a webhook costs one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

from situate.server.errors import StatusError
from situate.server.registry.stored_object import StoredObject, read_stored
from situate.server.registry.turns import Turns
from situate.server.resources import Resource

CONVERTED_BYTES: Final = 64 << 20
"""Of the converted objects of one list, which are in memory until it is sent."""
PART: Final = 500
"""Objects that are converted before their sizes are counted."""
TOO_LONG: Final = (
    f"the list is too long to be converted by a webhook: limit is {CONVERTED_BYTES} bytes; ask for pages, by limit and "
    "continue"
)


def has_webhook(resource: Resource) -> bool:
    """Whether a webhook converts between the versions of this kind."""
    return resource.custom is not None and resource.custom.stored.has_webhook


async def shown(resource: Resource, stored: StoredObject) -> StoredObject:
    """The object in this version. Raises StatusError (500) if the webhook fails."""
    if resource.custom is None or not resource.custom.stored.is_convertible(stored.value):
        return stored
    (value,) = await resource.custom.stored.converted([stored.value])
    return _converted(stored, value)


async def all_shown(
    resource: Resource,
    items: Sequence[StoredObject],
    keep: Callable[[StoredObject], bool] | None = None,
    most: int = 0,
) -> Sequence[StoredObject]:
    """The objects in this version, a part at a time. Raises StatusError: 500 if the webhook fails, 413 for too many.
    `keep`: which of them, if not all. `most`: the first so many, if not 0."""
    custom = resource.custom
    if custom is None or not custom.stored.has_webhook:
        return items
    done: list[StoredObject] = []
    size, turns = 0, Turns()
    for first in range(0, len(items), PART):
        part = items[first : first + PART]
        values = await custom.stored.converted([one.value for one in part])
        for one, value in zip(part, values, strict=True):
            made = _converted(one, value)
            if keep is None or keep(made):
                done.append(made)
                if len(done) == most:
                    return done
                size += 0 if made is one else len(value)
            await turns.others()
        if size > CONVERTED_BYTES:
            raise StatusError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", TOO_LONG)
    return done


def _converted(stored: StoredObject, value: bytes) -> StoredObject:
    """With what selectors read of the converted object: its labels may be others."""
    return stored if value is stored.value else read_stored(stored.key, value, stored.revision)


def is_outdated(resource: Resource, stored: StoredObject) -> bool:
    """Whether an object is stored in a version that is not the storage version any more: then an update writes it even
    if it changes nothing, as tools that migrate stored versions expect."""
    return resource.custom is not None and resource.custom.stored.is_outdated(stored.value)
