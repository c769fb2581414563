"""Latency: a limit refuses, a preference ranks; nodes before zones before regions; beside the rules for one node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.contract import Refusal
from situate.core.model.annotations import LATENCY_LIMIT_MS, LATENCY_PREFERENCE, LATENCY_TO
from situate.core.model.latency import LatencyTable, PlaceLatencies
from situate.core.model.meta import ObjectMeta
from situate.core.plugins.latency import NOT_KNOWN, REGION, TOO_FAR, ZONE, Latency
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

EU = PlaceLatencies(nodes={"edge": 1.5}, zones={"a": 9, "b": 20}, regions={"east": 86})
PLUGIN = Latency("table.yaml", {"eu": EU})


def cluster() -> Cluster:
    made = Cluster()
    made.add_node(node("edge", labels={ZONE: "a", REGION: "east"}))
    made.add_node(node("near", labels={ZONE: "a", REGION: "east"}))
    made.add_node(node("far", labels={ZONE: "b"}))
    made.add_node(node("farther", labels={ZONE: "c", REGION: "east"}))
    made.add_node(node("lost", labels={ZONE: "c", REGION: "west"}))
    return made


def wishing(limit: str | None = None, preference: str | None = None, to: str | None = "eu") -> dict[str, str]:
    given_ = {LATENCY_TO: to, LATENCY_LIMIT_MS: limit, LATENCY_PREFERENCE: preference}
    return {key: value for key, value in given_.items() if value is not None}


def checked(made: Cluster, annotations: dict[str, str], plugin: Latency = PLUGIN) -> Any:
    found = plugin.check(made.class_of(pod(annotations=annotations)), View(made))
    return found.tolist() if isinstance(found, np.ndarray) else found


def scored(made: Cluster, annotations: dict[str, str], feasible: list[bool] | None = None) -> list[int] | None:
    mask = np.ones(made.nodes.size, np.bool_) if feasible is None else np.array(feasible)
    found = PLUGIN.score(made.class_of(pod(annotations=annotations)), View(made, feasible=mask))
    return None if found is None else found.tolist()


def test_a_limit_refuses_nodes_that_are_further_away_or_of_which_nothing_is_known() -> None:
    assert checked(cluster(), wishing("9")) == [0, 0, TOO_FAR, TOO_FAR, NOT_KNOWN]
    assert checked(cluster(), wishing("8.999")) == [0, TOO_FAR, TOO_FAR, TOO_FAR, NOT_KNOWN]
    assert checked(cluster(), wishing("86")) == [0, 0, 0, 0, NOT_KNOWN]


def test_without_a_limit_no_node_is_refused() -> None:
    assert checked(cluster(), wishing()) is None
    assert checked(cluster(), {}) is None


def test_nearer_nodes_are_preferred_in_proportion_to_the_farthest_feasible_one() -> None:
    assert scored(cluster(), wishing()) == [99, 90, 77, 0, 0]
    found = scored(cluster(), wishing("20"), feasible=[False, True, True, False, False])
    assert found is not None
    assert found[1:3] == [55, 0]


def test_a_preference_says_how_much_being_near_counts() -> None:
    assert scored(cluster(), wishing(preference="50")) == [49, 45, 38, 0, 0]
    assert scored(cluster(), wishing(preference="0")) is None
    assert scored(cluster(), {}) is None


def test_a_view_of_one_node_has_one_answer() -> None:
    made = cluster()
    kind = made.class_of(pod(annotations=wishing("9")))
    for row, expected in enumerate([0, 0, TOO_FAR, TOO_FAR, NOT_KNOWN]):
        found = PLUGIN.check(kind, View(made).at(row))
        assert isinstance(found, np.ndarray)
        assert found.tolist() == [expected]


@pytest.mark.parametrize(
    "annotations, text",
    [
        (wishing("soon"), 'annotation situate.dev/latency-limit-ms: "soon" is no number of milliseconds'),
        (wishing("-1"), 'annotation situate.dev/latency-limit-ms: "-1" is no number of milliseconds'),
        (wishing("1e3"), 'annotation situate.dev/latency-limit-ms: "1e3" is no number of milliseconds'),
        (
            wishing(preference="101"),
            'annotation situate.dev/latency-preference: "101" is no whole number from 0 to 100',
        ),
        (
            wishing("5", to=None),
            "annotation situate.dev/latency-limit-ms: needs situate.dev/latency-to, the place that it is about",
        ),
        (wishing("5", to="mars"), 'no latency is known to the place "mars"'),
    ],
)
def test_what_cannot_be_judged_turns_the_pod_away(annotations: dict[str, str], text: str) -> None:
    assert checked(cluster(), annotations) == Refusal(text)


def test_a_preference_for_a_place_that_is_not_known_does_not_count() -> None:
    assert checked(cluster(), wishing(to="mars")) is None
    assert scored(cluster(), wishing(to="mars")) is None


def test_a_table_that_is_told_takes_the_place_of_the_arguments() -> None:
    made = cluster()
    assert checked(made, wishing("9")) == [0, 0, TOO_FAR, TOO_FAR, NOT_KNOWN]
    told = LatencyTable(metadata=ObjectMeta(name="table.yaml"), places={"eu": PlaceLatencies(zones={"c": 3})})
    assert made.put_object(told)
    assert not made.put_object(told)
    assert checked(made, wishing("9")) == [NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, 0, 0]
    other = LatencyTable(metadata=ObjectMeta(name="other.yaml"), places={"eu": EU})
    assert made.put_object(other)
    assert checked(made, wishing("9")) == [NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, 0, 0]
    assert checked(made, wishing("9"), Latency("", {"eu": EU})) == [0, 0, TOO_FAR, TOO_FAR, NOT_KNOWN]


def test_a_node_that_moves_to_another_zone_is_judged_anew() -> None:
    made = cluster()
    assert checked(made, wishing("9"))[2] == TOO_FAR
    made.add_node(node("far", labels={ZONE: "a"}))
    assert checked(made, wishing("9"))[2] == 0


def test_pods_with_other_wishes_are_of_other_classes_and_those_with_other_notes_are_not() -> None:
    made = cluster()
    kinds = [made.class_of(pod(annotations=one)) for one in (wishing("9"), wishing("10"), wishing(), {})]
    assert len({kind.id for kind in kinds}) == 4
    assert made.class_of(pod(annotations={**wishing("9"), "example.com/note": "x"})) is kinds[0]
    assert kinds[0].annotations == wishing("9")


# -- the twin ------------------------------------------------------------------------------------------------------

names = st.sampled_from("abc")
milliseconds = st.integers(0, 500).map(lambda tenths: tenths / 10)
tables = st.dictionaries(names, milliseconds)
places = st.builds(lambda n, z, r: PlaceLatencies(nodes=n, zones=z, regions=r), tables, tables, tables)


@settings(max_examples=150)
@given(places, st.lists(st.tuples(st.none() | names, st.none() | names), max_size=3), st.integers(0, 500))
def test_answers_for_all_nodes_are_those_of_the_rules(
    table: PlaceLatencies, where: list[tuple[str | None, str | None]], tenths: int
) -> None:
    made, expected = Cluster(), []
    for name, (zone, region) in zip("abc", where, strict=False):
        labels = {key: value for key, value in ((ZONE, zone), (REGION, region)) if value is not None}
        made.add_node(node(name, labels=labels))
        known = [
            by[key]
            for by, key in ((table.nodes, name), (table.zones, zone or ""), (table.regions, region or ""))
            if key in by
        ]
        expected.append(known[0] if known else None)
    plugin = Latency("", {"eu": table})
    kind = made.class_of(pod(annotations=wishing(str(tenths / 10))))
    codes = plugin.check(kind, View(made))
    assert isinstance(codes, np.ndarray)
    assert codes.tolist() == [NOT_KNOWN if ms is None else TOO_FAR if ms * 10 > tenths else 0 for ms in expected]
    found = plugin.score(kind, View(made, feasible=np.ones(len(where), np.bool_)))
    assert found is not None
    top = max((ms for ms in expected if ms is not None), default=0)
    for score, ms in zip(found.tolist(), expected, strict=True):
        assert score == (100 if not top else 0 if ms is None else 100 - round(ms * 1_000) * 100 // round(top * 1_000))
