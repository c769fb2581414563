"""How nodes are scored by the storage that unbound claims would take up."""

import pytest

from builders import node, pod, selector
from situate.core.model.named import NamedObject
from situate.core.plugins.support.arguments import UtilizationShapePoint
from situate.core.plugins.volume_binding import StorageScoring, VolumeBinding, VolumeBindingArgs
from situate.core.state.view import View
from situate.core.versions import V1_36, V1_37
from storage_builders import (
    ZONE,
    capacity,
    claim,
    claimed,
    cluster_of,
    csi_driver,
    reached_from,
    storage_class,
    volume,
    waiting,
)

SCORING = VolumeBinding.from_args(VolumeBindingArgs(), frozenset({"preFilter", "filter", "preScore", "score"}))


def scores(*items: NamedObject, claims: tuple[str, ...] = ("c",), plugin: VolumeBinding = SCORING) -> list[int]:
    """The scores of two nodes, in zones a and b."""
    cluster = cluster_of(node("na", labels={ZONE: "a"}), node("nb", labels={ZONE: "b"}), *items)
    scoring = plugin.with_rules(V1_37)
    assert isinstance(scoring, StorageScoring)
    return list(map(int, scoring.score(cluster.class_of(pod("p", volumes=claimed(*claims))), View(cluster))))


def local(name: str, zone: str, size: str, class_name: str = "late") -> NamedObject:
    return volume(name, class_name=class_name, capacity=size, terms=(reached_from(ZONE, zone),))


def reported(name: str, zone: str, free: str) -> NamedObject:
    return capacity(name, "late", selector(**{ZONE: zone}), free)


LATE = storage_class("late")


@pytest.mark.parametrize(
    "items, claims, expected",
    [
        pytest.param((), (), [0, 0], id="a pod without volumes"),
        pytest.param((claim("c", volume="pv"), volume("pv")), ("c",), [0, 0], id="a claim that is bound"),
        pytest.param((LATE, waiting("c")), ("c",), [0, 0], id="nothing is known of the capacity"),
        pytest.param(
            (LATE, waiting("c"), local("a", "a", "10Gi"), local("b", "b", "2Gi")),
            ("c",),
            [90, 50],
            id="the larger volume is the less used",
        ),
        pytest.param(
            (LATE, waiting("c"), csi_driver(), reported("a", "a", "3Gi"), reported("b", "b", "1Gi")),
            ("c",),
            [67, 0],
            id="the capacity that a driver reports",
        ),
        pytest.param(
            (LATE, waiting("c"), waiting("d"), csi_driver(), reported("a", "a", "4Gi"), reported("b", "b", "8Gi")),
            ("c", "d"),
            [50, 75],
            id="claims of a class share the capacity",
        ),
        pytest.param(
            (LATE, waiting("c"), waiting("d"), local("a", "a", "4Gi"), local("b", "a", "2Gi")),
            ("c", "d"),
            [67, 0],
            id="volumes of a class add up",
        ),
        pytest.param(
            (LATE, waiting("c"), waiting("d"), local("a", "a", "2Gi"), csi_driver(), reported("b", "b", "2Gi")),
            ("c", "d"),
            [50, 0],
            id="where a claim gets a volume, capacity does not count",
        ),
        pytest.param(
            (
                *(LATE, waiting("c"), local("a", "a", "10Gi"), local("b", "b", "10Gi")),
                *(storage_class("other"), waiting("d", "other"), local("c", "a", "3Gi", "other")),
                local("d", "b", "1Gi", "other"),
            ),
            ("c", "d"),
            [79, 45],
            id="the mean of the classes, rounded half up",
        ),
    ],
)
def test_scores(items: tuple[NamedObject, ...], claims: tuple[str, ...], expected: list[int]) -> None:
    assert scores(*items, claims=claims) == expected


def test_the_shape_of_the_arguments_decides() -> None:
    shape = (UtilizationShapePoint(utilization=0, score=0), UtilizationShapePoint(utilization=50, score=10))
    plugin = VolumeBinding.from_args(VolumeBindingArgs(shape=shape), frozenset({"filter", "score"}))
    items = (LATE, waiting("c"), local("a", "a", "10Gi"), local("b", "b", "2Gi"))
    assert scores(*items, plugin=plugin) == [20, 100]


def test_without_filter_no_volumes_are_known() -> None:
    plugin = VolumeBinding.from_args(VolumeBindingArgs(), frozenset({"preFilter", "preScore", "score"}))
    assert scores(LATE, waiting("c"), local("a", "a", "10Gi"), plugin=plugin) == [0, 0]


def test_by_the_rules_of_1_36_it_does_not_score() -> None:
    assert not hasattr(SCORING.with_rules(V1_36), "score")
