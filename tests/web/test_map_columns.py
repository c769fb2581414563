"""The columns of the map: a reader that gets only what changed sees the same as one that gets everything."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod, taint
from situate.core.model.node import NodeCondition
from situate.core.state.cluster import Cluster
from situate.web.map_columns import CORDONED, MOST, NONE, NOT_READY, TAINTED, MapColumns


class Browser:
    """Applies what it gets, as map.js does."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[Any, ...]] = {}
        self.tick = self.layout = -1

    def take(self, columns: MapColumns, cluster: Cluster, tick: int) -> None:
        found = columns.read(cluster, self.tick, self.layout)
        self.tick, self.layout = tick, columns.layout
        if found is None:
            return
        if "rows" not in found:
            self.rows = {}
        for at, row in enumerate(found.get("rows", range(len(found["names"])))):
            shares = tuple(column[at] for column in found["shares"])
            self.rows[row] = (found["names"][at], found["zones"][found["zone"][at]], found["state"][at], shares)

    @property
    def nodes(self) -> dict[str, tuple[Any, ...]]:
        return {row[0]: row[1:] for row in self.rows.values() if row[0]}


class World:
    """A cluster and its columns, changed as a model does."""

    def __init__(self) -> None:
        self.cluster, self.columns, self.tick = Cluster(), MapColumns(), 1

    def put(self, name: str, **fields: Any) -> None:
        one = node(name, **{"cpu": "4", "memory": "8Gi", "pods": 10, **fields})
        if self.cluster.add_node(one):
            self.columns.node_seen(self.cluster.nodes.rows[name], one, self.tick + 1)

    def drop(self, name: str) -> None:
        row = self.cluster.nodes.rows.get(name)
        if row is not None:
            self.cluster.remove_node(name)
            self.columns.node_seen(row, None, self.tick + 1)

    def flush(self) -> None:
        self.columns.update(self.cluster, self.tick + 1)
        self.tick += 1


names = st.sampled_from(["a", "b", "c", "d"])
steps = st.one_of(
    st.tuples(st.just("put"), names, st.sampled_from(["z1", "z2", ""]), st.booleans()),
    st.tuples(st.just("drop"), names),
    st.tuples(st.just("bind"), st.sampled_from(["p", "q", "r"]), names, st.sampled_from(["500m", "4", "9"])),
    st.tuples(st.just("unbind"), st.sampled_from(["p", "q", "r"])),
    st.tuples(st.just("gpu"), names),
    st.tuples(st.just("read")),
)


@given(st.lists(steps, max_size=40))
def test_changes_add_up_to_the_whole_however_slow_the_reader(history: list[tuple[Any, ...]]) -> None:
    world, slow = World(), Browser()
    for step in history:
        match step:
            case ("put", name, zone, cordoned):
                labels = {"topology.kubernetes.io/zone": zone} if zone else {}
                world.put(name, labels=labels, unschedulable=cordoned)
            case ("gpu", name):
                world.put(name, allocatable={"nvidia.com/gpu": "8"})
            case ("drop", name):
                world.drop(name)
            case ("bind", name, where, cpu):
                world.cluster.add_pod(pod(name, node_name=where, cpu=cpu))
            case ("unbind", name):
                world.cluster.remove_pod(f"default/{name}")
            case _:
                world.flush()
                slow.take(world.columns, world.cluster, world.tick)
    world.flush()
    fresh = Browser()
    fresh.take(world.columns, world.cluster, world.tick)
    slow.take(world.columns, world.cluster, world.tick)
    assert slow.nodes == fresh.nodes
    assert set(fresh.nodes) == set(world.cluster.nodes.rows)


def test_a_share_is_what_is_requested_of_what_a_node_has() -> None:
    world = World()
    world.put("a", labels={"topology.kubernetes.io/zone": "east"})
    world.cluster.add_pod(pod("p", node_name="a", cpu="1", memory="8Gi"))
    world.flush()
    browser = Browser()
    browser.take(world.columns, world.cluster, world.tick)
    assert browser.nodes == {"a": ("east", 0, (250, 1_000, 100))}


def test_an_overfull_node_and_one_without_a_resource_are_told_apart() -> None:
    world = World()
    world.put("a", cpu="1", allocatable={"nvidia.com/gpu": "1"})
    world.put("b", cpu="0")
    world.cluster.add_pod(pod("p", node_name="a", cpu="3"))
    world.cluster.add_pod(pod("q", node_name="b", cpu="1"))
    world.flush()
    browser = Browser()
    browser.take(world.columns, world.cluster, world.tick)
    assert browser.nodes["a"][2] == (3_000, 0, 100, 0)
    assert browser.nodes["b"][2] == (MOST, 0, 100, NONE)


def test_the_state_of_a_node_is_that_of_its_taints_and_conditions() -> None:
    world = World()
    world.put("cordoned", unschedulable=True)
    world.put("lost", taints=(taint("node.kubernetes.io/unreachable", effect="NoExecute"),))
    world.put("dedicated", taints=(taint("dedicated", "gpu"),))
    world.put("preferred", taints=(taint("dedicated", "gpu", "PreferNoSchedule"),))
    world.put("sick", conditions=(NodeCondition(type="Ready", status="Unknown"),))
    world.flush()
    browser = Browser()
    browser.take(world.columns, world.cluster, world.tick)
    states = {name: row[1] for name, row in browser.nodes.items()}
    assert states == {"cordoned": CORDONED, "lost": NOT_READY, "dedicated": TAINTED, "preferred": 0, "sick": NOT_READY}
    assert world.columns.count(NOT_READY) == 2


def test_use_is_sent_where_it_changed() -> None:
    world = World()
    world.put("a")
    world.put("b")
    world.flush()
    tick = world.tick
    world.columns.use_seen({"a": (100, 200)}, world.tick + 1)
    world.flush()
    found = world.columns.read(world.cluster, tick, world.columns.layout)
    assert found is not None
    assert (found["names"], found["used"]) == (["a"], [[100], [200]])
