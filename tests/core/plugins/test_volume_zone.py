"""VolumeZone refuses nodes in another zone or region than a bound volume's labels name."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.contract import Refusal
from situate.core.model.storage import PersistentVolumeClaim
from situate.core.plugins.volume_zone import VolumeZone
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from storage_builders import ZONE, claim, claimed, cluster_of, storage_class, volume, waiting

REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"


def check(cluster: Cluster, *claims: str) -> list[int] | Refusal | None:
    verdict = VolumeZone().check(cluster.class_of(pod("p", volumes=claimed(*claims))), View(cluster))
    return verdict if verdict is None or isinstance(verdict, Refusal) else verdict.tolist()


@pytest.mark.parametrize(
    "of_volume,of_node,code",
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, 0, id="the same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, 1, id="another zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, 0, id="one of the volume's zones"),
        pytest.param({ZONE: "a__b"}, {ZONE: "c"}, 1, id="none of the volume's zones"),
        pytest.param({ZONE: "a"}, {}, 0, id="a node that does not say where it is"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, 1, id="a node that says its region and not its zone"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, 1, id="the zone fits and the region does not"),
        pytest.param({OLD_ZONE: "a"}, {ZONE: "a"}, 0, id="an old label of the volume is read by its new name"),
        pytest.param({OLD_ZONE: "a"}, {OLD_ZONE: "b", ZONE: "a"}, 1, id="the node's old label goes first"),
        pytest.param({ZONE: "a"}, {OLD_ZONE: "a"}, 1, id="a new label of the volume is not read by its old name"),
        pytest.param({OLD_REGION: "r"}, {REGION: "r"}, 0, id="regions have an old name too"),
        pytest.param({ZONE: "a__"}, {ZONE: "c"}, 0, id="a label with an empty zone in it is not read"),
    ],
)
def test_a_node(of_volume: dict[str, str], of_node: dict[str, str], code: int) -> None:
    cluster = cluster_of(node("n1", labels=of_node), volume("pv", labels=of_volume), claim("c", volume="pv"))
    # A label that nobody could read leaves nothing to check.
    expected = None if of_volume == {ZONE: "a__"} else [code]
    assert check(cluster, "c") == expected


def test_every_claim_must_fit() -> None:
    nodes = [node(f"n-{zone}", labels={ZONE: zone}) for zone in "abc"]
    volumes = [volume("one", labels={ZONE: "a__b"}), volume("two", labels={ZONE: "b__c"})]
    cluster = cluster_of(*nodes, *volumes, claim("c", volume="one"), claim("d", volume="two"))
    assert check(cluster, "c", "d") == [1, 0, 1]


@pytest.mark.parametrize(
    "wanted,text",
    [
        pytest.param(None, 'persistentvolumeclaim "c" not found', id="no such claim"),
        pytest.param(claim("c", volume="pv"), 'persistentvolume "pv" not found', id="no such volume"),
        pytest.param(
            claim("c"), "PersistentVolumeClaim had no pv name and storageClass name", id="neither volume nor class"
        ),
        pytest.param(waiting("c", "gone"), 'storageclass.storage.k8s.io "gone" not found', id="no such class"),
        pytest.param(waiting("c", "now"), "PersistentVolume had no name", id="a claim that should be bound by now"),
    ],
)
def test_a_claim_that_turns_the_pod_away(wanted: PersistentVolumeClaim | None, text: str) -> None:
    cluster = cluster_of(node(), storage_class("now", late=False), *([] if wanted is None else [wanted]))
    assert check(cluster, "c") == Refusal(text, eviction_helps=False)


def test_a_claim_without_a_name_turns_the_pod_away() -> None:
    assert check(cluster_of(node()), "") == Refusal("PersistentVolumeClaim had no name", eviction_helps=False)


def test_a_claim_that_waits_for_the_pod_has_no_say() -> None:
    assert check(cluster_of(node(), storage_class("late"), waiting("c")), "c") is None


def test_a_pod_without_volumes_is_let_through() -> None:
    assert check(cluster_of(node())) is None


def test_no_eviction_moves_a_volume() -> None:
    (reason,) = VolumeZone.reasons
    assert (reason.text, reason.code) == ("node(s) had no available volume zone", "UnschedulableAndUnresolvable")


LABELS = st.dictionaries(
    st.sampled_from((ZONE, REGION, OLD_ZONE, OLD_REGION)), st.sampled_from(("a", "b", "a__b", " b ")), max_size=4
)


def plainly(of_volume: dict[str, str], of_node: dict[str, str]) -> int:
    today = {OLD_ZONE: ZONE, OLD_REGION: REGION}
    if not {ZONE, REGION, OLD_ZONE, OLD_REGION} & of_node.keys():
        return 0
    for key, value in of_volume.items():
        here = of_node.get(key, of_node.get(today.get(key, key)))
        if here not in [zone.strip() for zone in value.split("__")]:
            return 1
    return 0


@settings(max_examples=80)
@given(LABELS, st.lists(LABELS, min_size=1, max_size=5))
def test_all_rows_at_once_are_as_one_by_one(of_volume: dict[str, str], of_nodes: list[dict[str, str]]) -> None:
    nodes = [node(f"n{at}", labels=labels) for at, labels in enumerate(of_nodes)]
    cluster = cluster_of(*nodes, volume("pv", labels=of_volume), claim("c", volume="pv"))
    expected = [plainly(of_volume, labels) for labels in of_nodes] if of_volume else None
    assert check(cluster, "c") == expected
