"""What is attached where stays right while pods, claims, volumes, attachments and nodes come, change and go."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from builders import node, pod
from situate.core.state.attached import NO_LIMIT
from situate.core.state.audit import audit
from situate.core.state.holders import volume_room
from situate.core.state.view import View
from storage_builders import (
    DRIVER,
    attachment,
    claim,
    claimed,
    cluster_of,
    csi_node,
    storage_class,
    volume,
    waiting,
)

NODES = st.sampled_from(("n0", "n1", "n2"))
CLAIMS = st.sampled_from(("c0", "c1", "c2"))
VOLUMES = st.sampled_from(("v0", "v1", "v2"))
DRIVERS = st.sampled_from((DRIVER, "other"))


class Attached(RuleBasedStateMachine):
    """Whatever happens, in whatever order, a recount gives what is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = cluster_of(*(node(f"n{at}") for at in range(3)))
        for at in range(3):
            self.cluster.put_object(csi_node(f"n{at}", {DRIVER: 3, "other": 3}))
            self.cluster.put_object(volume(f"v{at}", class_name="x"))
            self.cluster.put_object(claim(f"c{at}", volume=f"v{at}"))
            self.cluster.add_pod(pod(f"p{at}", volumes=claimed(f"c{at}"), node_name=f"n{at}"))

    @rule(name=NODES)
    def node_comes(self, name: str) -> None:
        self.cluster.add_node(node(name))

    @rule(name=NODES)
    def node_goes(self, name: str) -> None:
        self.cluster.remove_node(name)

    @rule(name=NODES, limits=st.dictionaries(DRIVERS, st.one_of(st.none(), st.integers(0, 3))))
    def limits_change(self, name: str, limits: dict[str, int | None]) -> None:
        self.cluster.put_object(csi_node(name, limits))

    @rule(name=NODES)
    def limits_go(self, name: str) -> None:
        self.cluster.forget_object(csi_node(name))

    @rule(number=st.integers(0, 3), where=NODES, claims=st.lists(CLAIMS, max_size=2))
    def pod_comes(self, number: int, where: str, claims: list[str]) -> None:
        self.cluster.add_pod(pod(f"p{number}", volumes=claimed(*claims), node_name=where))

    @rule(number=st.integers(0, 3))
    def pod_goes(self, number: int) -> None:
        self.cluster.remove_pod(f"default/p{number}")

    @rule(name=CLAIMS, of=VOLUMES)
    def claim_is_bound(self, name: str, of: str) -> None:
        self.cluster.put_object(claim(name, volume=of))

    @rule(name=CLAIMS)
    def claim_waits(self, name: str) -> None:
        self.cluster.put_object(waiting(name))

    @rule(name=CLAIMS)
    def claim_goes(self, name: str) -> None:
        self.cluster.forget_object(claim(name))

    @rule(name=VOLUMES, driver=DRIVERS, class_name=st.sampled_from("xy"))
    def volume_comes(self, name: str, driver: str, class_name: str) -> None:
        self.cluster.put_object(volume(name, driver=driver, class_name=class_name))

    @rule(name=VOLUMES)
    def volume_goes(self, name: str) -> None:
        self.cluster.forget_object(volume(name))

    @rule(driver=DRIVERS)
    def class_comes(self, driver: str) -> None:
        self.cluster.put_object(storage_class("late", provisioner=driver))

    @rule()
    def class_goes(self) -> None:
        self.cluster.forget_object(storage_class("late"))

    @rule(name=st.sampled_from("ab"), where=NODES, of=VOLUMES, driver=DRIVERS)
    def attachment_comes(self, name: str, where: str, of: str, driver: str) -> None:
        self.cluster.put_object(attachment(name, where, of, driver))

    @rule(name=st.sampled_from("ab"))
    def attachment_goes(self, name: str) -> None:
        self.cluster.forget_object(attachment(name, "", None))

    @invariant()
    def a_recount_gives_what_is_kept(self) -> None:
        assert audit(self.cluster) == []

    @invariant()
    def the_shelves_hold_what_the_objects_say(self) -> None:
        storage = self.cluster.objects.storage
        by_class: dict[str, dict[str, Any]] = {}
        for name, item in storage.volumes.items():
            by_class.setdefault(item.spec.storage_class_name, {})[name] = item
        assert storage.volumes_of_class == by_class
        by_node: dict[str, dict[str, Any]] = {}
        for name, attached in storage.attachments.items():
            by_node.setdefault(attached.spec.node_name, {})[name] = attached
        assert storage.attachments_on == by_node


Attached.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestAttachedVolumesStayRight = Attached.TestCase


def test_a_driver_without_a_limit_says_so() -> None:
    cluster = cluster_of(node("n1"), node("n2"), csi_node("n1", {DRIVER: 2}))
    used, limit = volume_room(View(cluster), DRIVER)
    assert (used.tolist(), limit.tolist()) == ([0, 0], [2, NO_LIMIT])


def test_many_nodes_have_room_in_the_columns() -> None:
    cluster = cluster_of(node("n0"), csi_node("n0", {DRIVER: 1}))
    volume_room(View(cluster), DRIVER)
    for at in range(1, 40):
        cluster.add_node(node(f"n{at}"))
        cluster.put_object(csi_node(f"n{at}", {DRIVER: at}))
    assert volume_room(View(cluster), DRIVER)[1].tolist() == [1, *range(1, 40)]
