"""VolumeRestrictions refuses nodes whose disks are taken, and all nodes while a claim for one pod only is in use."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.contract import Refusal
from situate.core.model.pod import Pod
from situate.core.model.volumes import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk, Volume
from situate.core.plugins.volume_restrictions import VolumeRestrictions
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from storage_builders import claim, claimed, cluster_of, ephemeral

FREE, DISK, CLAIM = 0, 1, 2
ONE_POD = ("ReadWriteOncePod",)


def check(cluster: Cluster, waiting: Pod, view: View | None = None) -> list[int] | Refusal | None:
    verdict = VolumeRestrictions().check(cluster.class_of(waiting), View(cluster) if view is None else view)
    return verdict if verdict is None or isinstance(verdict, Refusal) else verdict.tolist()


def gce(name: str = "d", *, read_only: bool = False) -> Volume:
    return Volume(name="v", gce_persistent_disk=GCEPersistentDisk(pd_name=name, read_only=read_only))


def ebs(name: str = "d", *, read_only: bool = False) -> Volume:
    return Volume(name="v", aws_elastic_block_store=AWSElasticBlockStore(volume_id=name, read_only=read_only))


def iscsi(name: str = "d", *, read_only: bool = False) -> Volume:
    return Volume(name="v", iscsi=ISCSI(iqn=name, read_only=read_only))


def rbd(*monitors: str, pool: str = "rbd", image: str = "d", read_only: bool = False) -> Volume:
    return Volume(name="v", rbd=RBD(monitors=monitors or ("m",), pool=pool, image=image, read_only=read_only))


@pytest.mark.parametrize(
    "wanted,taken,code",
    [
        pytest.param(gce(), gce(), DISK, id="a GCE disk is mounted once"),
        pytest.param(gce(read_only=True), gce(read_only=True), FREE, id="a GCE disk may be read by many"),
        pytest.param(gce(read_only=True), gce(), DISK, id="a GCE disk that is written cannot be read"),
        pytest.param(gce("d"), gce("e"), FREE, id="another GCE disk is another disk"),
        pytest.param(ebs(), ebs(), DISK, id="an EBS volume is mounted once"),
        pytest.param(ebs(read_only=True), ebs(read_only=True), DISK, id="an EBS volume cannot even be read twice"),
        pytest.param(iscsi(), iscsi(), DISK, id="an iSCSI target is mounted once"),
        pytest.param(iscsi(read_only=True), iscsi(read_only=True), FREE, id="an iSCSI target may be read by many"),
        pytest.param(rbd("a", "b"), rbd("b", "c"), DISK, id="an RBD image is known by any monitor in common"),
        pytest.param(rbd("a"), rbd("b"), FREE, id="without a monitor in common it is another RBD image"),
        pytest.param(rbd(pool="p"), rbd(pool="q"), FREE, id="in another pool it is another RBD image"),
        pytest.param(rbd(image="i"), rbd(image="j"), FREE, id="another RBD image is another disk"),
        pytest.param(rbd(read_only=True), rbd(read_only=True), FREE, id="an RBD image may be read by many"),
        pytest.param(gce("d"), ebs("d"), FREE, id="disks of two kinds never clash"),
    ],
)
def test_a_disk(wanted: Volume, taken: Volume, code: int) -> None:
    cluster = cluster_of(node("n1"), node("n2"), pod("bound", volumes=(taken,), node_name="n1"))
    assert check(cluster, pod("p", volumes=(wanted,))) == [code, FREE]


@pytest.mark.parametrize(
    "volumes",
    [pytest.param((), id="no volumes"), pytest.param((Volume(name="token"),), id="only volumes nobody else can want")],
)
def test_a_pod_with_nothing_to_share_is_let_through(volumes: tuple[Volume, ...]) -> None:
    cluster = cluster_of(node(), pod("bound", volumes=(gce(),), node_name="n1"))
    assert check(cluster, pod("p", volumes=volumes)) is None


def test_a_claim_that_is_not_there_turns_the_pod_away() -> None:
    cluster = cluster_of(node(), claim("here"))
    expected = Refusal('persistentvolumeclaim "there" not found', eviction_helps=False)
    assert check(cluster, pod("p", volumes=claimed("here", "there"))) == expected


def test_the_claim_of_an_ephemeral_volume_is_not_looked_for() -> None:
    assert check(cluster_of(node()), pod("p", volumes=(ephemeral(),))) is None


def test_a_claim_for_one_pod_only_is_refused_everywhere_while_a_pod_uses_it() -> None:
    cluster = cluster_of(node("n1"), node("n2"), claim("c", modes=ONE_POD))
    waiting = pod("p", volumes=claimed("c"))
    assert check(cluster, waiting) is None
    cluster.add_pod(pod("user", volumes=claimed("c"), node_name="n2"))
    assert check(cluster, waiting) == [CLAIM, CLAIM]


def test_a_claim_of_the_same_name_in_another_namespace_is_another_claim() -> None:
    cluster = cluster_of(node(), claim("c", modes=ONE_POD), claim("c", namespace="other", modes=ONE_POD))
    cluster.add_pod(pod("user", namespace="other", volumes=claimed("c"), node_name="n1"))
    assert check(cluster, pod("p", volumes=claimed("c"))) is None


def test_a_claim_that_many_pods_may_use_is_shared() -> None:
    cluster = cluster_of(node(), claim("c"), pod("user", volumes=claimed("c"), node_name="n1"))
    assert check(cluster, pod("p", volumes=claimed("c"))) is None


def test_an_ephemeral_volume_is_no_use_of_its_claim() -> None:
    owner = pod("owner", uid="u", volumes=(ephemeral("c"),), node_name="n1")
    cluster = cluster_of(node(), claim("owner-c", modes=ONE_POD, owner="u"), owner)
    assert check(cluster, pod("p", volumes=claimed("owner-c"))) is None


def test_a_taken_disk_is_said_before_a_taken_claim() -> None:
    cluster = cluster_of(
        node("n1"),
        node("n2"),
        claim("c", modes=ONE_POD),
        pod("user", volumes=(*claimed("c"), gce()), node_name="n1"),
    )
    assert check(cluster, pod("p", volumes=(*claimed("c"), gce()))) == [DISK, CLAIM]


def test_evicting_the_user_of_a_claim_frees_it() -> None:
    cluster = cluster_of(node(), claim("c", modes=ONE_POD), pod("user", volumes=claimed("c"), node_name="n1"))
    without = View(cluster).at(0).without(View(cluster).pods_on(0))
    assert check(cluster, pod("p", volumes=claimed("c")), without) == [FREE]


def test_evicting_a_pod_of_another_namespace_that_names_a_like_claim_counts_as_in_kubernetes() -> None:
    cluster = cluster_of(
        node("n1"),
        node("n2"),
        claim("c", modes=ONE_POD),
        pod("user", volumes=claimed("c"), node_name="n1"),
        pod("stranger", namespace="other", volumes=claimed("c"), node_name="n2"),
    )
    waiting = pod("p", volumes=claimed("c"))
    assert check(cluster, waiting, View(cluster).at(1)) == [CLAIM]
    assert check(cluster, waiting, View(cluster).at(1).without(View(cluster).pods_on(1))) == [FREE]


def test_evicting_one_of_two_users_of_a_claim_is_enough_as_in_kubernetes() -> None:
    users = [pod(f"user{at}", volumes=claimed("c"), node_name=f"n{at}") for at in (1, 2)]
    cluster = cluster_of(node("n1"), node("n2"), claim("c", modes=ONE_POD), *users)
    without = View(cluster).at(0).without(View(cluster).pods_on(0))
    assert check(cluster, pod("p", volumes=claimed("c")), without) == [FREE]


def test_an_added_pod_takes_its_disks() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    taker = cluster.class_of(pod("taker", volumes=(gce(),)))
    assert check(cluster, pod("p", volumes=(gce(),)), View(cluster).plus([(taker, 1)])) == [FREE, DISK]


def test_both_refusals_may_be_undone_by_eviction() -> None:
    in_use = "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
    assert [(reason.text, reason.code) for reason in VolumeRestrictions.reasons] == [
        ("node(s) had no available disk", "Unschedulable"),
        (f"node(s) unavailable due to {in_use}", "Unschedulable"),
    ]


DISKS = st.one_of(
    st.builds(gce, st.sampled_from("de"), read_only=st.booleans()),
    st.builds(ebs, st.sampled_from("de"), read_only=st.booleans()),
    st.builds(iscsi, st.sampled_from("de"), read_only=st.booleans()),
    st.builds(rbd, st.sampled_from("ab"), st.sampled_from("bc"), image=st.sampled_from("de"), read_only=st.booleans()),
)


def clash(one: Volume, other: Volume) -> bool:
    """Said once more, plainly: the same disk, and not both only reading."""
    ebs_one, ebs_other = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs_one and ebs_other:
        return ebs_one.volume_id == ebs_other.volume_id
    gce_one, gce_other = one.gce_persistent_disk, other.gce_persistent_disk
    if gce_one and gce_other:
        return gce_one.pd_name == gce_other.pd_name and not (gce_one.read_only and gce_other.read_only)
    if one.iscsi and other.iscsi:
        return one.iscsi.iqn == other.iscsi.iqn and not (one.iscsi.read_only and other.iscsi.read_only)
    if one.rbd and other.rbd:
        same = one.rbd.image == other.rbd.image and bool({*one.rbd.monitors} & {*other.rbd.monitors})
        return same and not (one.rbd.read_only and other.rbd.read_only)
    return False


@settings(max_examples=60)
@given(
    st.lists(st.lists(DISKS, max_size=3), min_size=1, max_size=4),
    st.lists(DISKS, min_size=1, max_size=3),
)
def test_disks_are_compared_with_every_pod_of_the_node(taken: list[list[Volume]], wanted: list[Volume]) -> None:
    cluster = cluster_of(*(node(f"n{at}") for at in range(len(taken))))
    for at, disks in enumerate(taken):
        for number, disk in enumerate(disks):
            cluster.add_pod(pod(f"b{at}-{number}", volumes=(disk,), node_name=f"n{at}"))
    expected = [int(any(clash(one, other) for one in wanted for other in disks)) for disks in taken]
    assert check(cluster, pod("p", volumes=tuple(wanted))) == expected
