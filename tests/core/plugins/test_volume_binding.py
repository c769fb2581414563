"""VolumeBinding refuses nodes that bound volumes do not reach, or where unbound claims would get none."""

from typing import Any

import pytest
from msgspec.structs import replace

from builders import expression, node, pod, selector, term
from situate.core.contract import Refusal
from situate.core.model.node import Node
from situate.core.model.nodeselector import NodeSelectorTerm
from situate.core.model.pod import Pod
from situate.core.model.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, VolumeNodeAffinity
from situate.core.model.volumes import AzureDisk, GCEPersistentDisk, Volume
from situate.core.plugins.volume_binding import VolumeBinding, VolumeDecision, decide
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from storage_builders import (
    DRIVER,
    ZONE,
    capacity,
    claim,
    claimed,
    cluster_of,
    csi_driver,
    csi_node,
    ephemeral,
    storage_class,
    volume,
    waiting,
)

NODE_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def check(cluster: Cluster, waits: Pod) -> list[int] | Refusal | None:
    verdict = VolumeBinding().check(cluster.class_of(waits), View(cluster))
    return verdict if verdict is None or isinstance(verdict, Refusal) else verdict.tolist()


def texts(cluster: Cluster, waits: Pod) -> list[list[str]]:
    """What is said of each node."""
    kind, view = cluster.class_of(waits), View(cluster)
    details = VolumeBinding().details(kind, view)
    return [[text for text, mask in details if mask[row]] for row in range(view.size)]


def using(*claims: str) -> Pod:
    return pod("p", volumes=claimed(*claims))


def in_zone(*zones: str) -> tuple[NodeSelectorTerm, ...]:
    return (term((ZONE, "In", zones)),)


def zoned(*zones: str) -> list[Node]:
    return [node(f"n-{zone}", labels={ZONE: zone}) for zone in zones]


# -- before any node is looked at --


@pytest.mark.parametrize(
    "wanted,text",
    [
        pytest.param(None, 'persistentvolumeclaim "c" not found', id="no such claim"),
        pytest.param(
            claim("c", volume="pv", phase="Lost"),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"',
            id="a claim that lost its volume",
        ),
        pytest.param(
            claim("c", volume="pv", deletion_timestamp="2026-01-01T00:00:00Z"),
            'persistentvolumeclaim "c" is being deleted',
            id="a claim that is going",
        ),
        pytest.param(
            waiting("c", "now"), "pod has unbound immediate PersistentVolumeClaims", id="a claim that should be bound"
        ),
        pytest.param(
            waiting("c", "gone"), "pod has unbound immediate PersistentVolumeClaims", id="a claim of no known class"
        ),
        pytest.param(waiting("c", volume="pv"), None, id="a claim that is bound"),
    ],
)
def test_a_claim(wanted: PersistentVolumeClaim | None, text: str | None) -> None:
    classes = [storage_class("now", late=False), storage_class("late")]
    cluster = cluster_of(node(), volume("pv"), *classes, *([] if wanted is None else [wanted]))
    assert check(cluster, using("c")) == ([0] if text is None else Refusal(text, eviction_helps=False))


def test_a_claim_that_names_its_volume_and_is_not_bound_yet_is_not_for_the_scheduler_to_bind() -> None:
    half = claim("c", volume="pv", storage_class_name="late")
    half = replace(half, metadata=replace(half.metadata, annotations={}))
    cluster = cluster_of(node(), volume("pv"), storage_class("late"), half)
    assert check(cluster, using("c")) == Refusal("pod has unbound immediate PersistentVolumeClaims")


def test_the_claims_are_asked_one_after_the_other() -> None:
    cluster = cluster_of(node(), claim("c", volume="pv", phase="Lost"))
    assert check(cluster, using("gone", "c")) == Refusal('persistentvolumeclaim "gone" not found')


@pytest.mark.parametrize(
    "owner,text",
    [
        pytest.param(
            None,
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"',
            id="the claim is not made yet",
        ),
        pytest.param(
            "another",
            "PVC default/p-scratch was not created for pod default/p (pod is not owner)",
            id="it is another's",
        ),
        pytest.param("u", None, id="it is the pod's own"),
    ],
)
def test_an_ephemeral_volume(owner: str | None, text: str | None) -> None:
    cluster = cluster_of(node(), storage_class("late"))
    if owner is not None:
        cluster.put_object(waiting("p-scratch", owner=owner))
    expected = [0] if text is None else Refusal(text, eviction_helps=False)
    assert check(cluster, pod("p", uid="u", volumes=(ephemeral(),))) == expected


@pytest.mark.parametrize(
    "volumes", [pytest.param((), id="no volumes"), pytest.param((Volume(name="token"),), id="no claims")]
)
def test_a_pod_without_claims_is_let_through(volumes: tuple[Volume, ...]) -> None:
    cluster = cluster_of(node())
    assert check(cluster, pod("p", volumes=volumes)) is None
    assert decide(cluster.class_of(pod("p", volumes=volumes)), View(cluster), 0) == VolumeDecision((), ())


# -- bound claims --


def test_a_bound_volume_must_reach_the_node() -> None:
    cluster = cluster_of(*zoned("a", "b"), volume("pv", terms=in_zone("a")), claim("c", volume="pv"))
    assert texts(cluster, using("c")) == [[], [NODE_AFFINITY]]


@pytest.mark.parametrize(
    "terms,fits",
    [
        pytest.param((), False, id="no terms reach nothing"),
        pytest.param((NodeSelectorTerm(),), False, id="an empty term reaches nothing"),
        pytest.param((term((ZONE, "Bogus", ("a",))),), False, id="a term nobody can read reaches nothing"),
        pytest.param((term((ZONE, "Bogus", ("a",))), *in_zone("a")), True, id="another term may still reach it"),
        pytest.param(
            (term(fields=(("metadata.name", "In", "other"),)),), True, id="what it asks of fields is not read"
        ),
        pytest.param((term((ZONE, "Exists", ())),), True, id="all operators count"),
    ],
)
def test_a_volumes_node_affinity(terms: tuple[NodeSelectorTerm, ...], fits: bool) -> None:
    cluster = cluster_of(*zoned("a"), volume("pv", terms=terms), claim("c", volume="pv"))
    assert texts(cluster, using("c")) == [[] if fits else [NODE_AFFINITY]]


def test_a_node_affinity_without_requirement_reaches_everything() -> None:
    cluster = cluster_of(node(), volume("pv", node_affinity=VolumeNodeAffinity()), claim("c", volume="pv"))
    assert check(cluster, using("c")) == [0]


def test_a_volume_that_is_gone_is_said_of_the_nodes_that_others_reach() -> None:
    cluster = cluster_of(
        *zoned("a", "b"), volume("pv", terms=in_zone("a")), claim("c", volume="pv"), claim("d", volume="gone")
    )
    assert texts(cluster, using("c", "d")) == [[GONE], [NODE_AFFINITY]]
    assert texts(cluster, using("d", "c")) == [[GONE], [GONE]], "the first claim that fails says why"


def test_where_the_plugin_was_handed_over_its_drivers_zones_count() -> None:
    gce_zone = "topology.gke.io/zone"
    nodes = [
        node("old", labels={ZONE: "a", gce_zone: "b"}),
        node("new", labels={ZONE: "a", gce_zone: "b"}),
        node("new-a", labels={ZONE: "b", gce_zone: "a"}),
    ]
    cluster = cluster_of(
        *nodes,
        csi_node("new", migrated="kubernetes.io/aws-ebs,kubernetes.io/gce-pd"),
        csi_node("new-a", migrated="kubernetes.io/gce-pd"),
        volume("pv", gce_persistent_disk=GCEPersistentDisk(pd_name="d"), terms=in_zone("a")),
        claim("c", volume="pv"),
    )
    assert texts(cluster, using("c")) == [[], [NODE_AFFINITY], []]


def test_a_volume_that_its_driver_does_not_know_refuses_the_nodes_that_handed_it_over() -> None:
    cluster = cluster_of(
        node("old"),
        node("new"),
        csi_node("new", migrated="kubernetes.io/azure-disk"),
        volume("pv", azure_disk=AzureDisk(disk_uri="u")),
        claim("c", volume="pv"),
    )
    assert check(cluster, using("c")) == [0, 5]
    assert texts(cluster, using("c")) == [
        [],
        ["could not translate pv: kind(Shared) is not supported in csi migration"],
    ]


# -- unbound claims: volumes that are there --


def static(*items: PersistentVolume | PersistentVolumeClaim) -> Cluster:
    """Nodes in zones a and b, and a class that makes no volumes."""
    return cluster_of(*zoned("a", "b"), storage_class("late", provisioner="kubernetes.io/no-provisioner"), *items)


def chosen(cluster: Cluster, *claims: str) -> list[dict[str, str] | None]:
    """What each claim is given on each node; None where the pod does not fit."""
    kind, view = cluster.class_of(using(*claims)), View(cluster)
    decisions = [decide(kind, view, row) for row in range(view.size)]
    return [None if decision is None else dict(decision.bindings) for decision in decisions]


def free(name: str, **fields: Any) -> PersistentVolume:
    return volume(name, class_name="late", **fields)


def test_the_smallest_volume_that_is_large_enough_is_chosen() -> None:
    sizes = {"small": "1Gi", "large": "9Gi", "right": "3Gi"}
    cluster = static(waiting("c", size="2Gi"), *(free(name, capacity=size) for name, size in sizes.items()))
    assert chosen(cluster, "c") == [{"c": "right"}, {"c": "right"}]


def test_of_equal_volumes_the_first_by_name_is_chosen() -> None:
    assert chosen(static(waiting("c"), free("b"), free("a")), "c") == [{"c": "a"}, {"c": "a"}]


def test_a_volume_is_chosen_where_it_can_be_reached() -> None:
    cluster = static(waiting("c"), free("pv", terms=in_zone("b")))
    assert chosen(cluster, "c") == [None, {"c": "pv"}]
    assert texts(cluster, using("c")) == [[NO_VOLUME], []]


@pytest.mark.parametrize(
    "wanted,offered",
    [
        pytest.param({"size": "11Gi"}, {}, id="too small"),
        pytest.param({"modes": ("ReadWriteMany",)}, {}, id="of another access mode"),
        pytest.param({"modes": ("ReadWriteOnce", "ReadWriteMany")}, {}, id="without one of the access modes"),
        pytest.param({"volume_mode": "Block"}, {}, id="of another volume mode"),
        pytest.param({"volume_attributes_class_name": "gold"}, {}, id="of another attributes class"),
        pytest.param({"selector": selector(speed="fast")}, {"labels": {"speed": "slow"}}, id="not selected"),
        pytest.param({}, {"phase": "Released"}, id="not available"),
        pytest.param({}, {"deletion_timestamp": "2026-01-01T00:00:00Z"}, id="going"),
        pytest.param({}, {"claim_ref": ("default", "another")}, id="another claim's"),
        pytest.param({}, {"claim_ref": ("other", "c")}, id="a claim's of another namespace"),
        pytest.param({}, {"claim_ref": ("default", "c", "of-before")}, id="an earlier claim's of the same name"),
    ],
)
def test_a_volume_that_does_not_suit(wanted: dict[str, Any], offered: dict[str, Any]) -> None:
    cluster = static(waiting("c", **wanted), free("pv", **offered))
    assert texts(cluster, using("c")) == [[NO_VOLUME], [NO_VOLUME]]


@pytest.mark.parametrize(
    "wanted,offered",
    [
        pytest.param({"selector": selector(speed="fast")}, {"labels": {"speed": "fast"}}, id="selected"),
        pytest.param({"modes": ("ReadWriteOnce",)}, {"modes": ("ReadOnlyMany", "ReadWriteOnce")}, id="of more modes"),
        pytest.param({"size": "10Gi"}, {}, id="just large enough"),
        pytest.param({"size": None}, {}, id="for a claim of no size"),
        pytest.param({"volume_attributes_class_name": ""}, {}, id="of no attributes class, which may be written empty"),
    ],
)
def test_a_volume_that_suits(wanted: dict[str, Any], offered: dict[str, Any]) -> None:
    assert check(static(waiting("c", **wanted), free("pv", **offered)), using("c")) == [0, 0]


def test_the_class_of_a_volume_may_stand_in_an_annotation() -> None:
    annotated = volume("pv", annotations={"volume.beta.kubernetes.io/storage-class": "late"}, class_name="x")
    assert chosen(static(waiting("c"), annotated), "c") == [{"c": "pv"}, {"c": "pv"}]


def test_a_volume_made_for_the_claim_is_taken_though_another_is_smaller() -> None:
    made = free("made", claim_ref=("default", "c", "c"), phase="Bound", modes=())
    assert chosen(static(waiting("c"), free("free", capacity="1Gi"), made), "c") == [{"c": "made"}, {"c": "made"}]


def test_where_the_volume_made_for_the_claim_cannot_be_reached_no_other_will_do() -> None:
    made = free("made", claim_ref=("default", "c"), terms=in_zone("b"))
    assert chosen(static(waiting("c"), free("free"), made), "c") == [None, {"c": "made"}]


def test_a_volume_goes_to_one_claim_only() -> None:
    two = [waiting("c"), waiting("d")]
    assert chosen(static(*two, free("one")), "c", "d") == [None, None]
    cluster = static(*two, free("one"), free("two", terms=in_zone("b")))
    assert chosen(cluster, "c", "d") == [None, {"c": "one", "d": "two"}]


def test_the_smaller_claim_chooses_first() -> None:
    cluster = static(
        waiting("large", size="4Gi"), waiting("small"), free("nine", capacity="9Gi"), free("five", capacity="5Gi")
    )
    assert chosen(cluster, "large", "small") == [{"small": "five", "large": "nine"}] * 2


def test_a_claim_that_is_named_twice_wants_two_volumes_as_in_kubernetes() -> None:
    assert chosen(static(waiting("c"), free("one")), "c", "c") == [None, None]
    assert check(static(waiting("c"), free("one"), free("two")), using("c", "c")) == [0, 0]


def test_a_claim_whose_selector_cannot_be_read_refuses_every_node() -> None:
    cluster = static(waiting("c", selector=selector(expression("k", "Bogus"))), free("pv"))
    assert check(cluster, using("c")) == [5, 5]
    assert texts(cluster, using("c"))[0] == [
        'error creating internal label selector for claim: default/c: "Bogus" is not a valid label selector operator'
    ]


# -- unbound claims: volumes that are to be made --


def test_what_finds_no_volume_is_made() -> None:
    cluster = cluster_of(*zoned("a", "b"), storage_class(), waiting("c"), waiting("d"), free("pv", terms=in_zone("a")))
    kind, view = cluster.class_of(using("c", "d")), View(cluster)
    assert decide(kind, view, 0) == VolumeDecision((("c", "pv"),), ("d",))
    assert decide(kind, view, 1) == VolumeDecision((), ("c", "d"))


@pytest.mark.parametrize(
    "topologies,fits",
    [
        pytest.param((), [True, True], id="a class that names no places allows all"),
        pytest.param(({ZONE: ("a", "c")},), [True, False], id="any of the values"),
        pytest.param(({ZONE: ("a",)}, {ZONE: ("b",)}), [True, True], id="any of the terms"),
        pytest.param(({ZONE: ("a",), "disk": ("ssd",)},), [False, False], id="every label of a term"),
        pytest.param(({},), [False, False], id="an empty term allows nothing"),
        pytest.param(({ZONE: ()},), [False, False], id="a term without values allows nothing"),
    ],
)
def test_a_class_may_allow_some_places_only(
    topologies: tuple[dict[str, tuple[str, ...]], ...], fits: list[bool]
) -> None:
    cluster = cluster_of(*zoned("a", "b"), storage_class(topologies=topologies), waiting("c"))
    assert texts(cluster, using("c")) == [[] if fit else [NO_VOLUME] for fit in fits]


@pytest.mark.parametrize(
    "free_space,largest,fits",
    [
        pytest.param("1Gi", None, True, id="just enough"),
        pytest.param("1023Mi", None, False, id="too little"),
        pytest.param("9Gi", "1Mi", False, id="enough, but not in one piece"),
        pytest.param("1Mi", "9Gi", True, id="the largest piece goes first"),
        pytest.param(None, None, False, id="not said"),
    ],
)
def test_a_driver_that_tells_its_free_space(free_space: str | None, largest: str | None, fits: bool) -> None:
    told = capacity("here", "late", selector(), free_space, largest)
    cluster = cluster_of(node(), csi_driver(), storage_class(), waiting("c"), told)
    assert texts(cluster, using("c")) == [[] if fits else [NO_SPACE]]


def test_free_space_counts_where_it_can_be_reached() -> None:
    spaces = [
        capacity("a", "late", selector(**{ZONE: "a"}), "9Gi"),
        capacity("nowhere", "late", None, "9Gi"),
        capacity("other", "another class", selector(), "9Gi"),
    ]
    cluster = cluster_of(*zoned("a", "b"), csi_driver(), storage_class(), waiting("c"), *spaces)
    assert texts(cluster, using("c")) == [[], [NO_SPACE]]


@pytest.mark.parametrize(
    "driver",
    [
        pytest.param(csi_driver("another"), id="the class is of another driver"),
        pytest.param(csi_driver(DRIVER, storage_capacity=False), id="the driver does not tell"),
    ],
)
def test_free_space_is_not_asked_for(driver: CSIDriver) -> None:
    cluster = cluster_of(node(), driver, storage_class(), waiting("c"))
    assert check(cluster, using("c")) == [0]


def test_a_claim_of_no_size_fits_where_there_is_no_space() -> None:
    assert check(cluster_of(node(), csi_driver(), storage_class(), waiting("c", size=None)), using("c")) == [0]


def test_a_claim_whose_volume_is_being_made_fits_its_node_only() -> None:
    cluster = cluster_of(*zoned("a", "b"), storage_class(), waiting("c", selected_node="n-b"), free("pv"))
    assert texts(cluster, using("c")) == [[NO_VOLUME], []]
    assert decide(cluster.class_of(using("c")), View(cluster), 1) == VolumeDecision((), ("c",)), (
        "no other volume is taken"
    )


def test_two_claims_whose_volumes_are_being_made_on_two_nodes_fit_nowhere() -> None:
    claims = [waiting("c", selected_node="n-a"), waiting("d", selected_node="n-b")]
    assert texts(cluster_of(*zoned("a", "b"), storage_class(), *claims), using("c", "d")) == [[NO_VOLUME], [NO_VOLUME]]


def test_the_first_claim_that_cannot_be_made_says_why() -> None:
    claims = [waiting("full", "full", size="2Gi"), waiting("none", "none", size="1Gi")]
    classes = [storage_class("full"), storage_class("none", provisioner="kubernetes.io/no-provisioner")]
    cluster = cluster_of(node(), csi_driver(), *classes, *claims)
    assert texts(cluster, using("full", "none")) == [[NO_VOLUME]], "the smaller claim is looked at first"
    cluster.put_object(waiting("full", "full", size="1Mi"))
    assert texts(cluster, using("full", "none")) == [[NO_SPACE]]


# -- both --


def test_a_node_may_be_refused_for_a_bound_claim_and_an_unbound_one() -> None:
    cluster = static(volume("pv", terms=in_zone("a")), claim("c", volume="pv"), waiting("d"))
    assert texts(cluster, using("c", "d")) == [[NO_VOLUME], [NODE_AFFINITY, NO_VOLUME]]
    assert check(cluster, using("c", "d")) == [2, 1]
    assert chosen(cluster, "c", "d") == [None, None]


def test_a_pod_that_is_turned_away_goes_nowhere() -> None:
    cluster = cluster_of(node())
    assert decide(cluster.class_of(using("gone")), View(cluster), 0) is None


def test_no_eviction_helps() -> None:
    assert [reason.text for reason in VolumeBinding.reasons[:4]] == [NODE_AFFINITY, NO_VOLUME, NO_SPACE, GONE]
    assert not any(reason.eviction_helps for reason in VolumeBinding.reasons)


def test_one_row_is_answered_as_all_are() -> None:
    cluster = cluster_of(
        *zoned("a", "b", "c"),
        storage_class(topologies=({ZONE: ("a", "b")},)),
        volume("pv", terms=in_zone("b", "c")),
        claim("c", volume="pv"),
        waiting("d"),
    )
    kind, view = cluster.class_of(using("c", "d")), View(cluster)
    one_by_one = [VolumeBinding().check(kind, view.at(row)) for row in range(3)]
    assert [codes.tolist() for codes in one_by_one if codes is not None and not isinstance(codes, Refusal)] == [
        [1], [0], [2],
    ]  # fmt: skip
