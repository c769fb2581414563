"""What holds of owners whatever is applied and updated."""

from hypothesis import given, settings
from hypothesis import strategies as st

from situate.wire.patching import FieldWriter, applied, merge_schema, updated
from situate.wire.patching.fields import difference, from_v1
from situate.wire.patching.owned import compared, fields_of, with_named
from wire.patching.strategies import DEPLOYMENTS, Json

SHAPE = merge_schema("apps/v1", "Deployment")
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), DEPLOYMENTS), max_size=4)


def writer(manager: str, hour: int = 0) -> FieldWriter:
    return FieldWriter(manager, "apps/v1", "Deployment", f"2026-01-02T{hour:02}:04:05Z")


def after(steps: list[tuple[str, bool, Json]]) -> Json | None:
    """An object that several have applied to or replaced."""
    live: Json | None = None
    for hour, (manager, apply, item) in enumerate(steps):
        if apply:
            live = applied(live, item, writer(manager, hour), force=True)
        else:
            live = updated(live, item, writer(manager, hour))
    return live


@settings(max_examples=100)
@given(STEPS, DEPLOYMENTS)
def test_applying_the_same_twice_changes_nothing(steps: list[tuple[str, bool, Json]], config: Json) -> None:
    once = applied(after(steps), config, writer("me", 10), force=True)
    assert applied(once, config, writer("me", 11)) == once


@settings(max_examples=100)
@given(STEPS, DEPLOYMENTS)
def test_all_that_was_applied_is_there_then(steps: list[tuple[str, bool, Json]], config: Json) -> None:
    found = applied(after(steps), config, writer("me", 10), force=True)
    change = compared(config, found, SHAPE)
    assert not change.modified
    # An empty value says nothing about what is inside.
    assert not difference(fields_of(config, SHAPE), with_named(fields_of(found, SHAPE)))


@settings(max_examples=100)
@given(STEPS)
def test_nobody_owns_what_is_not_there(steps: list[tuple[str, bool, Json]]) -> None:
    live = after(steps)
    if live is None:
        return
    there = with_named(fields_of(live, SHAPE))
    for entry in live["metadata"].get("managedFields", []):
        assert not difference(with_named(from_v1(entry["fieldsV1"])), there)


@settings(max_examples=100)
@given(DEPLOYMENTS, DEPLOYMENTS)
def test_an_applier_that_stops_applying_leaves_what_others_applied(theirs: Json, ours: Json) -> None:
    alone = applied(None, theirs, writer("them"))
    both = applied(alone, ours, writer("me", 1), force=True)
    left = applied(both, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}, writer("me", 2))
    owned = from_v1(left["metadata"].get("managedFields", [{"fieldsV1": {}}])[0]["fieldsV1"])
    assert not difference(owned, with_named(fields_of(left, SHAPE)))
    assert all(entry["manager"] == "them" for entry in left["metadata"].get("managedFields", []))
