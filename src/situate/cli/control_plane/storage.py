"""Metrics about the free space of a server's store."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from situate.store.contract import Store

FULL: Final = "situate_store_full"
FREE: Final = "situate_store_free_bytes"
GAUGES: Final = {
    FULL: "1 while there is no room for ordinary writes to the store's file; deletes still work.",
    FREE: "The room for ordinary writes: on the disk, or below the limit of the file; 0 for a store that has no file.",
}


class Roomy(Protocol):
    """A file store's free space, as metrics."""

    full: bool
    free_bytes: int


def room_gauges(store: Store) -> Mapping[str, tuple[str, Callable[[], int]]]:
    room: Roomy | None = getattr(store, "room", None)
    return {
        FULL: (GAUGES[FULL], lambda: int(room is not None and room.full)),
        FREE: (GAUGES[FREE], lambda: 0 if room is None else room.free_bytes),
    }
