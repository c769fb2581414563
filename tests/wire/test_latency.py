"""Latency tables: what a file says, or one line about what is wrong with it."""

import pytest

from situate.core.model.latency import PlaceLatencies
from situate.wire.errors import InputError
from situate.wire.latency import load_latencies


def test_a_table_has_milliseconds_by_place() -> None:
    found = load_latencies(b"places:\n  eu: {nodes: {edge: 1}, zones: {a: 2.5}}\n  us: {regions: {west: 80}}\n")
    assert found == {
        "eu": PlaceLatencies(nodes={"edge": 1.0}, zones={"a": 2.5}),
        "us": PlaceLatencies(regions={"west": 80.0}),
    }


@pytest.mark.parametrize(
    "text, problem",
    [
        ("", "one document with `places` is wanted"),
        ("places: {}", "has no places"),
        ("places: {eu: {}}\n---\nplaces: {us: {}}", "one document with `places` is wanted"),
        ("place: {}", 'strict decoding error: unknown field "place"'),
        ("places: {eu: {zone: {}}}", 'strict decoding error: unknown field "places[eu].zone"'),
        ("places: {eu: {zones: {a: soon}}}", 'places[eu].zones[a]: Invalid value: "soon": must be of type number'),
        (
            "places: {eu: {zones: {a: -1, b: -2}}}",
            "places[eu].zones[a]: Invalid value: -1.0: not in valid range [0, 1000000000] (and 1 more)",
        ),
        ("places: {eu: {zones: {a: .nan}}}", ".nan is not a number that JSON has"),
        ("[1]", "must be of type object"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load_latencies(text.encode(), "table.yaml")
    assert str(caught.value).startswith("table.yaml: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
