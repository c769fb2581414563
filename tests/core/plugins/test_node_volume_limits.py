"""NodeVolumeLimits refuses nodes to which a driver could not attach the pod's volumes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.contract import Wake, WakeEvent
from situate.core.model.meta import ObjectMeta
from situate.core.model.named import NamedObject
from situate.core.model.pod import Pod
from situate.core.model.storage import CSIDriver, CSIDriverSpec
from situate.core.model.volumes import (
    AWSElasticBlockStore,
    AzureDisk,
    CSISource,
    GCEPersistentDisk,
    Volume,
    VsphereVolume,
)
from situate.core.plugins.node_volume_limits import NodeVolumeLimits
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.core.versions import V1_37
from storage_builders import (
    DRIVER,
    attachment,
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

GCE = "pd.csi.storage.gke.io"
EBS = "ebs.csi.aws.com"


def check(cluster: Cluster, waits: Pod, view: View | None = None) -> list[int] | None:
    codes = NodeVolumeLimits().check(cluster.class_of(waits), View(cluster) if view is None else view)
    return None if codes is None else codes.tolist()


def texts(cluster: Cluster, waits: Pod, row: int = 0) -> list[str]:
    details = NodeVolumeLimits().details(cluster.class_of(waits), View(cluster))
    return [text for text, mask in details if mask[row]]


def bound(*names: str) -> list[NamedObject]:
    """Claims of these names, each with a volume of its own."""
    return [item for name in names for item in (volume(f"pv-{name}"), claim(name, volume=f"pv-{name}"))]


def gce(name: str) -> Volume:
    return Volume(name=name, gce_persistent_disk=GCEPersistentDisk(pd_name=name))


@pytest.mark.parametrize(
    "limit,users,code",
    [
        pytest.param(1, 0, 0, id="the last that a driver can attach"),
        pytest.param(1, 1, 1, id="one too many"),
        pytest.param(0, 0, 1, id="a driver that can attach none"),
        pytest.param(None, 5, 0, id="a driver that sets itself no limit"),
    ],
)
def test_the_volumes_of_pods_are_counted(limit: int | None, users: int, code: int) -> None:
    names = [f"c{at}" for at in range(users)]
    pods = [pod(f"b-{name}", volumes=claimed(name), node_name="n1") for name in names]
    cluster = cluster_of(node(), csi_node("n1", {DRIVER: limit}), *bound("mine", *names), *pods)
    assert check(cluster, pod("p", volumes=claimed("mine"))) == [code]


def test_a_node_without_a_csi_node_has_no_limits() -> None:
    cluster = cluster_of(node("n1"), node("n2"), csi_node("n2", {DRIVER: 0}), *bound("c"))
    assert check(cluster, pod("p", volumes=claimed("c"))) == [0, 1]


def test_a_volume_that_two_pods_share_is_attached_once() -> None:
    cluster = cluster_of(
        node("n1"),
        node("n2"),
        csi_node("n1", {DRIVER: 1}),
        csi_node("n2", {DRIVER: 0}),
        *bound("c"),
        pod("b", volumes=claimed("c"), node_name="n1"),
    )
    assert check(cluster, pod("p", volumes=claimed("c"))) == [0, 1]


def test_each_driver_has_its_own_limit() -> None:
    cluster = cluster_of(
        node(),
        csi_node("n1", {DRIVER: 1, "other": 1}),
        *bound("c"),
        volume("pv-d", driver="other"),
        claim("d", volume="pv-d"),
        pod("b", volumes=claimed("d"), node_name="n1"),
    )
    assert check(cluster, pod("p", volumes=claimed("c"))) == [0]
    cluster.put_object(volume("pv-e", driver="other"))
    cluster.put_object(claim("e", volume="pv-e"))
    assert check(cluster, pod("p", volumes=claimed("c", "e"))) == [1]


def test_a_claim_without_a_volume_counts_for_the_driver_of_its_class() -> None:
    cluster = cluster_of(node(), csi_node("n1", {DRIVER: 1}), storage_class("late"), waiting("c"), waiting("d"))
    assert check(cluster, pod("p", volumes=claimed("c"))) == [0]
    assert check(cluster, pod("p", volumes=claimed("c", "d"))) == [1]
    cluster.add_pod(pod("b", volumes=claimed("d"), node_name="n1"))
    assert check(cluster, pod("p", volumes=claimed("c"))) == [1]


def test_what_is_attached_all_the_same_counts() -> None:
    cluster = cluster_of(
        node(), csi_node("n1", {DRIVER: 1}), *bound("c"), volume("left"), attachment("a", "n1", "left")
    )
    waits = pod("p", volumes=claimed("c"))
    assert check(cluster, waits) == [1]
    cluster.forget_object(attachment("a", "n1", "left"))
    assert check(cluster, waits) == [0]


def test_an_attachment_of_a_running_pods_volume_is_not_counted_twice() -> None:
    cluster = cluster_of(
        node(),
        csi_node("n1", {DRIVER: 2}),
        *bound("c", "d"),
        attachment("a", "n1", "pv-d"),
        pod("b", volumes=claimed("d"), node_name="n1"),
    )
    assert check(cluster, pod("p", volumes=claimed("c"))) == [0]


def test_the_pods_own_volume_counts_twice_if_it_is_attached_and_unused_as_in_kubernetes() -> None:
    cluster = cluster_of(node(), csi_node("n1", {DRIVER: 1}), *bound("c"), attachment("a", "n1", "pv-c"))
    assert check(cluster, pod("p", volumes=claimed("c"))) == [1]


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(attachment("a", "n1", "left", attacher=""), id="one without an attacher"),
        pytest.param(attachment("a", "n1", None), id="one without a volume"),
        pytest.param(attachment("a", "n1", "gone"), id="one of a volume that is gone"),
        pytest.param(attachment("a", "elsewhere", "left"), id="one to another node"),
    ],
)
def test_an_attachment_that_does_not_count(item: NamedObject) -> None:
    cluster = cluster_of(node(), csi_node("n1", {DRIVER: 1}), *bound("c"), volume("left"), item)
    assert check(cluster, pod("p", volumes=claimed("c"))) == [0]


def test_an_in_tree_disk_counts_for_the_driver_that_took_over() -> None:
    cluster = cluster_of(node(), csi_node("n1", {GCE: 1}), pod("b", volumes=(gce("d"),), node_name="n1"))
    assert check(cluster, pod("p", volumes=(gce("e"),))) == [1]
    assert check(cluster, pod("p", volumes=(gce("d"),))) == [0], "it is attached already"


def test_an_in_tree_volume_and_class_count_for_the_driver_that_took_over() -> None:
    cluster = cluster_of(
        node(),
        csi_node("n1", {GCE: 1}),
        storage_class("gce", provisioner="kubernetes.io/gce-pd"),
        waiting("c", "gce"),
        volume("pv", gce_persistent_disk=GCEPersistentDisk(pd_name="d")),
        claim("d", volume="pv"),
    )
    assert check(cluster, pod("p", volumes=claimed("c", "d"))) == [1]
    assert check(cluster, pod("p", volumes=claimed("c"))) == [0]


@pytest.mark.parametrize(
    "volumes",
    [
        pytest.param((), id="no volumes"),
        pytest.param((Volume(name="token"),), id="only volumes that nobody attaches"),
    ],
)
def test_a_pod_with_nothing_to_attach_is_let_through(volumes: tuple[Volume, ...]) -> None:
    assert check(cluster_of(node(), csi_node("n1", {DRIVER: 0})), pod("p", volumes=volumes)) is None


def test_a_kind_that_was_never_handed_over_is_not_counted() -> None:
    vsphere = Volume(name="v", vsphere_volume=VsphereVolume(volume_path="p"))
    cluster = cluster_of(node(), csi_node("n1", {"csi.vsphere.vmware.com": 0}))
    assert check(cluster, pod("p", volumes=(vsphere,))) == [0]


def test_a_claim_that_is_not_there_refuses_every_node() -> None:
    cluster = cluster_of(node("n1"), node("n2"), csi_node("n2", {DRIVER: 0}))
    waits = pod("p", volumes=claimed("c"))
    assert check(cluster, waits) == [2, 2]
    assert texts(cluster, waits) == ['looking up PVC default/c: persistentvolumeclaim "c" not found']


def test_the_claim_of_a_running_pod_may_be_gone() -> None:
    cluster = cluster_of(
        node(), csi_node("n1", {DRIVER: 1}), *bound("c"), pod("b", volumes=claimed("gone"), node_name="n1")
    )
    assert check(cluster, pod("p", volumes=claimed("c"))) == [0]


def test_a_node_whose_pods_cannot_be_counted_is_refused_with_the_reason() -> None:
    cluster = cluster_of(
        node("n1"),
        node("n2"),
        csi_node("n1", {DRIVER: 9}),
        csi_node("n2"),
        *bound("c"),
        claim("b-scratch", owner="another"),
        pod("b", uid="u", volumes=(ephemeral(),), node_name="n1"),
    )
    waits = pod("p", volumes=claimed("c"))
    assert check(cluster, waits) == [2, 0], "where there are no limits nobody counts"
    assert texts(cluster, waits) == ["PVC default/b-scratch was not created for pod default/b (pod is not owner)"]
    assert check(cluster, waits, View(cluster).at(0).without(View(cluster).pods_on(0))) == [0]


@pytest.mark.parametrize(
    "disk,text",
    [
        pytest.param(
            Volume(name="v", azure_disk=AzureDisk(disk_uri="u")),
            "converting volume(v) from inline to csi: kind(Shared) is not supported in csi migration",
            id="an Azure disk that is not managed",
        ),
        pytest.param(
            Volume(name="v", aws_elastic_block_store=AWSElasticBlockStore(volume_id="aws://z/x")),
            "converting volume(v) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID Invalid format"
            " for AWS volume (aws://z/x)",
            id="an EBS volume with a strange name",
        ),
    ],
)
def test_a_disk_that_its_driver_does_not_know_refuses_nodes_with_drivers(disk: Volume, text: str) -> None:
    cluster = cluster_of(node("n1"), node("n2"), csi_node("n1"))
    waits = pod("p", volumes=(disk,))
    assert check(cluster, waits) == [2, 0]
    assert texts(cluster, waits) == [text]


def test_overlays_are_counted() -> None:
    cluster = cluster_of(
        node(), csi_node("n1", {DRIVER: 1}), *bound("c", "d", "e"), pod("b", volumes=claimed("d"), node_name="n1")
    )
    waits, view = pod("p", volumes=claimed("c")), View(cluster)
    emptied = view.without(view.pods_on(0))
    assert check(cluster, waits, emptied) == [0]
    assert check(cluster, waits, emptied.plus([(cluster.class_of(pod("q", volumes=claimed("e"))), 0)])) == [1]
    assert check(cluster, waits, view) == [1], "the overlay left nothing behind"


def test_the_reasons_are_kubernetes() -> None:
    too_many = NodeVolumeLimits.reasons[0]
    assert (too_many.text, too_many.code) == ("node(s) exceed max volume count", "Unschedulable")


CLAIMS = [f"c{at}" for at in range(5)]


@settings(max_examples=60)
@given(
    limits=st.lists(st.dictionaries(st.sampled_from((DRIVER, EBS)), st.integers(0, 3)), min_size=1, max_size=3),
    drivers=st.lists(st.sampled_from((DRIVER, EBS, "unlimited")), min_size=5, max_size=5),
    handles=st.lists(st.sampled_from("xyz"), min_size=5, max_size=5),
    running=st.lists(st.tuples(st.integers(0, 2), st.lists(st.sampled_from(CLAIMS), max_size=3)), max_size=5),
    attached=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(CLAIMS)), max_size=4),
    wanted=st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3),
)
def test_all_rows_at_once_are_as_one_by_one(
    limits: list[dict[str, int]],
    drivers: list[str],
    handles: list[str],
    running: list[tuple[int, list[str]]],
    attached: list[tuple[int, str]],
    wanted: list[str],
) -> None:
    unique = {name: (drivers[at], handles[at]) for at, name in enumerate(CLAIMS)}
    cluster = cluster_of(*(node(f"n{at}") for at in range(3)))
    for at, of_node in enumerate(limits):
        cluster.put_object(csi_node(f"n{at}", of_node))
    for name, (driver, handle) in unique.items():
        cluster.put_object(volume(f"pv-{name}", csi=CSISource(driver=driver, volume_handle=handle)))
        cluster.put_object(claim(name, volume=f"pv-{name}"))
    for number, (at, names) in enumerate(running):
        cluster.add_pod(pod(f"b{number}", volumes=claimed(*names), node_name=f"n{at}"))
    for number, (at, name) in enumerate(attached):
        cluster.put_object(attachment(f"a{number}", f"n{at}", f"pv-{name}", unique[name][0]))

    expected = []
    for at in range(3):
        used = {unique[name] for where, names in running if where == at for name in names}
        left_over = {unique[name] for where, name in attached if where == at} - used
        new = {unique[name] for name in wanted} - used
        # What is attached, and is the pod's own, and no running pod's, is in two of these, and counts twice.
        counts = {
            driver: sum(driver == each for group in (used, left_over, new) for each, _ in group) for driver, _ in new
        }
        here = limits[at] if at < len(limits) else {}
        expected.append(int(any(count > here.get(driver, 99) for driver, count in counts.items())))
    waits = pod("p", volumes=claimed(*wanted))
    assert check(cluster, waits) == expected
    assert [check(cluster, waits, View(cluster).at(at)) for at in range(3)] == [[code] for code in expected]


# -- drivers that nodes must have, by the rules of 1.37 --

MISSING = f"{DRIVER} CSI driver is not installed on the node"


def required(name: str = DRIVER) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(prevent_pod_scheduling_if_missing=True))


def missing(plugin: NodeVolumeLimits, cluster: Cluster, waits: Pod) -> list[list[str]]:
    details = plugin.details(cluster.class_of(waits), View(cluster))
    return [[text for text, mask in details if mask[row]] for row in range(len(cluster.nodes.names))]


@pytest.mark.parametrize(
    "driver, expected",
    [
        pytest.param(required(), [[], [MISSING], [MISSING]], id="a driver that nodes must have"),
        pytest.param(csi_driver(), [[], [], []], id="a driver that may be missing"),
        pytest.param(required("other"), [[], [], []], id="another driver"),
    ],
)
def test_by_the_rules_of_1_37_a_node_must_have_the_driver(driver: CSIDriver, expected: list[list[str]]) -> None:
    nodes = [node("has"), node("lacks"), node("bare")]
    cluster = cluster_of(*nodes, csi_node("has", {DRIVER: None}), csi_node("lacks", {"x": None}), driver, *bound("c"))
    waits = pod("p", volumes=claimed("c"))
    plugin = NodeVolumeLimits().with_rules(V1_37)
    assert missing(plugin, cluster, waits) == expected
    codes = plugin.check(cluster.class_of(waits), View(cluster))
    assert codes is not None
    assert [plugin.reasons[code - 1].code if code else "" for code in codes.tolist()] == [
        "Unschedulable" if texts else "" for texts in expected
    ]
    assert missing(NodeVolumeLimits(), cluster, waits) == [[], [], []], "1.36 does not look"


@pytest.mark.parametrize(
    "event, helps",
    [
        pytest.param(
            WakeEvent(Wake.CSI_NODE_UPDATED, item=csi_node("n", {DRIVER: None}), item_before=csi_node("n")),
            True,
            id="a node got a driver without a limit",
        ),
        pytest.param(
            WakeEvent(Wake.CSI_DRIVER_UPDATED, item=csi_driver(), item_before=required()),
            True,
            id="the driver may be missing now",
        ),
        pytest.param(WakeEvent(Wake.CSI_DRIVER_DELETED, item=required()), True, id="the driver is not known any more"),
        pytest.param(WakeEvent(Wake.CSI_DRIVER_DELETED, item=csi_driver()), False, id="it was not needed"),
        pytest.param(
            WakeEvent(Wake.CSI_DRIVER_UPDATED, item=required(), item_before=csi_driver()), False, id="it is needed now"
        ),
    ],
)
def test_what_ends_the_lack_of_a_driver_wakes_by_the_rules_of_1_37(event: WakeEvent, helps: bool) -> None:
    waits = Cluster().class_of(pod("p", volumes=claimed("c")))
    assert NodeVolumeLimits().with_rules(V1_37).wakes(waits, event) is helps
    assert not NodeVolumeLimits().wakes(waits, event)
