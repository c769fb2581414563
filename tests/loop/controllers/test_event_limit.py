"""How many events are recorded about one object."""

from situate.core.reconcile.effects import ObjectRef
from situate.loop.controllers.event_limit import BURST, OBJECTS, REFILL_MS, EventLimit


def a_set(name: str = "web") -> ObjectRef:
    return ObjectRef("apps/v1", "ReplicaSet", "default", name, f"uid-{name}")


def test_as_many_as_client_go_records() -> None:
    limit = EventLimit()
    assert [limit.admits(a_set(), 1_000) for _ in range(BURST + 2)] == [True] * BURST + [False] * 2
    assert limit.admits(a_set("other"), 1_000)


def test_one_more_for_each_time_that_passes() -> None:
    limit = EventLimit()
    for _ in range(BURST):
        limit.admits(a_set(), 0)
    assert not limit.admits(a_set(), REFILL_MS - 1)
    assert limit.admits(a_set(), REFILL_MS)
    assert not limit.admits(a_set(), REFILL_MS)


def test_an_object_without_events_for_long_is_forgotten() -> None:
    limit = EventLimit()
    for _ in range(BURST):
        limit.admits(a_set(), 0)
    for other in range(OBJECTS):
        limit.admits(a_set(f"other-{other}"), 0)
    assert limit.admits(a_set(), 0)
