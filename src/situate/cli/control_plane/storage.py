"""What a server says about the room of its store: a health check, and metrics."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from situate.loop.health import Check
from situate.store.contract import Store

FULL: Final = "situate_store_full"
FREE: Final = "situate_store_free_bytes"
GAUGES: Final = {
    FULL: "1 while there is no room for ordinary writes to the store; deletes still work.",
    FREE: "The room for ordinary writes: on the disk, or below the limit of the file; 0 for a store that has no file.",
}
PROBLEM: Final = (
    "there is no room for the store: writes are refused, and deletes still work; free some room on its disk"
)


class Roomy(Protocol):
    """What a store in a file says about its room."""

    full: bool
    free_bytes: int


def room_of(store: Store) -> Roomy | None:
    """None: the store does not know."""
    return getattr(store, "room", None)


def room_check(store: Store) -> Check:
    room = room_of(store)
    return Check("store-room", lambda: PROBLEM if room is not None and room.full else "")


def room_gauges(store: Store) -> Mapping[str, tuple[str, Callable[[], int]]]:
    room = room_of(store)
    return {
        FULL: (GAUGES[FULL], lambda: int(room is not None and room.full)),
        FREE: (GAUGES[FREE], lambda: 0 if room is None else room.free_bytes),
    }
