"""What each member of a fleet is told: each waiting pod is told to one of them, to more only if it waits in vain."""

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.changes import Change, NodeGone, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.fleet.members import FleetMember
from situate.core.fleet.share import SPREAD_MS, STALE_MS, Share
from situate.core.model.pod import Pod, PodCondition

NAMES = ("one", "two", "three")
REFUSED = (PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),)


def members(names: Iterable[str]) -> list[FleetMember]:
    return [FleetMember(name) for name in names]


def waiting(number: int, **fields: Any) -> Pod:
    return pod(f"p{number}", uid=f"uid-{number}", scheduler_name="default-scheduler", **fields)


def ref(one: Pod) -> PodRef:
    return PodRef(one.metadata.namespace, one.metadata.name, one.metadata.uid)


class Engine:
    """What an engine would know by what it was told."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.pods: dict[str, Pod] = {}
        self.nodes: set[str] = set()

    def hear(self, changes: Sequence[Change]) -> None:
        for change in changes:
            match change:
                case PodSeen(one):
                    self.pods[ref(one).key] = one
                case PodGone(gone):
                    self.pods.pop(gone.key, None)
                case NodeSeen(one):
                    self.nodes.add(one.metadata.name)
                case NodeGone(name):
                    self.nodes.discard(name)

    @property
    def queue(self) -> set[str]:
        return {key for key, one in self.pods.items() if not one.spec.node_name}

    @property
    def counted(self) -> set[str]:
        return {key for key, one in self.pods.items() if one.spec.node_name}


def fleet(names: Iterable[str] = NAMES, pool_label: str = "") -> dict[str, Engine]:
    engines = {name: Engine(Share(name, pool_label)) for name in names}
    for one in engines.values():
        one.hear(one.share.join(members(engines), 0))
    return engines


def tell(engines: dict[str, Engine], changes: Sequence[Change], now: int = 0) -> None:
    for one in engines.values():
        one.hear(one.share.take(changes, now))


@st.composite
def histories(draw: st.DrawFn) -> list[object]:
    """Pods that come, are bound and go; members that come and go."""
    return draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("comes"), st.integers(0, 15)),
                st.tuples(st.just("bound"), st.integers(0, 15)),
                st.tuples(st.just("gone"), st.integers(0, 15)),
                st.tuples(st.just("members"), st.sets(st.sampled_from(NAMES), min_size=1)),
            ),
            max_size=40,
        )
    )


@given(histories())
@settings(max_examples=60)
def test_every_waiting_pod_is_in_exactly_one_live_members_queue(history: list[tuple[str, object]]) -> None:
    engines = fleet()
    live: set[str] = set(NAMES)
    there: dict[int, Pod] = {}
    for what, value in history:
        match what, value:
            case "comes", int(number) if number not in there:
                there[number] = waiting(number)
                tell(engines, [PodSeen(there[number])])
            case "bound", int(number) if number in there:
                there[number] = waiting(number, node_name="n1")
                tell(engines, [PodSeen(there[number])])
            case "gone", int(number) if number in there:
                tell(engines, [PodGone(ref(there.pop(number)))])
            case "members", set(names):
                live = names
                for one in engines.values():
                    one.hear(one.share.join(members(live), 0))
        expected = {ref(one).key for one in there.values() if not one.spec.node_name}
        queues = [key for name in live for key in engines[name].queue]
        assert sorted(queues) == sorted(expected)
        for name in live:  # without pools, everybody sees what is bound
            assert engines[name].counted == {ref(one).key for one in there.values() if one.spec.node_name}


def test_a_takeover_moves_the_dead_members_pods_and_no_other() -> None:
    engines = fleet()
    tell(engines, [PodSeen(waiting(number)) for number in range(60)])
    before = {name: set(one.queue) for name, one in engines.items()}
    assert all(before.values())
    for name in ("one", "three"):
        engines[name].hear(engines[name].share.join(members(("one", "three")), 0))
    after = {name: engines[name].queue for name in ("one", "three")}
    assert after["one"] >= before["one"]
    assert after["three"] >= before["three"]
    assert after["one"] | after["three"] == set().union(*before.values())


def test_what_is_being_bound_is_not_withdrawn() -> None:
    engine = Engine(Share("one", may_withdraw=lambda key: key != "default/p1"))
    engine.hear(engine.share.join(members(("one",)), 0))
    engine.hear(engine.share.take([PodSeen(waiting(number)) for number in range(40)], 0))
    engine.hear(engine.share.join(members(NAMES), 0))
    assert 3 < len(engine.queue) < 30
    assert "default/p1" in engine.queue


def test_a_pod_is_told_to_nobody_who_does_not_decide_on_its_scheduler() -> None:
    share = {"one": Engine(Share("one")), "two": Engine(Share("two"))}
    for one in share.values():
        one.hear(one.share.join([FleetMember("one", ("batch",)), FleetMember("two", ("default-scheduler",))], 0))
    tell(share, [PodSeen(waiting(number)) for number in range(20)])
    assert share["one"].queue == set()
    assert len(share["two"].queue) == 20


def test_a_pod_that_its_owner_does_not_place_is_not_its_owners_alone_for_ever() -> None:
    engines = fleet()
    tell(engines, [PodSeen(waiting(1))])
    assert sum(bool(one.queue) for one in engines.values()) == 1
    for turns, expected in ((1, 2), (2, 3)):
        for one in engines.values():
            one.hear(one.share.due(turns * STALE_MS))
        assert sum(bool(one.queue) for one in engines.values()) == expected


def test_an_update_of_a_pod_is_told_to_whoever_has_it() -> None:
    engines = fleet()
    tell(engines, [PodSeen(waiting(1))])
    tell(engines, [PodSeen(waiting(1, labels={"a": "b"}))])
    (owner,) = (one for one in engines.values() if one.queue)
    assert owner.pods["default/p1"].metadata.labels == {"a": "b"}


# ── pools ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def pools(count: int, nodes: int = 4) -> list[Change]:
    return [
        NodeSeen(node(f"n{pool}-{number}", labels={"pool": f"pool-{pool}"}))
        for pool in range(count)
        for number in range(nodes)
    ]


def test_nodes_are_divided_by_pool_and_each_has_one_member() -> None:
    engines = fleet(pool_label="pool")
    tell(engines, pools(6))
    seen = sorted(name for one in engines.values() for name in one.nodes)
    assert len(seen) == len(set(seen)) == 24
    assert all(len(one.nodes) == 8 for one in engines.values())


def test_a_dead_members_pools_are_taken_over_with_the_pods_on_them() -> None:
    engines = fleet(pool_label="pool")
    tell(engines, pools(3))
    tell(engines, [PodSeen(waiting(number, node_name=f"n{number % 3}-0")) for number in range(9)])
    assert sum(len(one.counted) for one in engines.values()) == 9
    del engines["two"]
    for one in engines.values():
        one.hear(one.share.join(members(engines), 0))
    assert sum(len(one.nodes) for one in engines.values()) == 12
    assert sum(len(one.counted) for one in engines.values()) == 9
    for one in engines.values():
        assert {f"n{int(key.removeprefix('default/p')) % 3}-0" for key in one.counted} <= one.nodes


def test_a_pod_that_asks_for_a_pool_is_its_members_and_nobody_elses() -> None:
    engines = fleet(pool_label="pool")
    tell(engines, pools(3))
    tell(engines, [PodSeen(waiting(number, node_selector={"pool": "pool-1"})) for number in range(10)])
    (owner,) = (one for one in engines.values() if "n1-0" in one.nodes)
    assert len(owner.queue) == 10
    tell(engines, [PodSeen(waiting(1, node_selector={"pool": "pool-1"}, conditions=REFUSED))])
    for one in engines.values():
        one.hear(one.share.due(1_000 * STALE_MS))
    assert sum(len(one.queue) for one in engines.values()) == 10


def test_a_pod_that_fits_nowhere_in_its_owners_pools_goes_on_to_the_others_one_by_one() -> None:
    engines = fleet(pool_label="pool")
    tell(engines, pools(3))
    tell(engines, [PodSeen(waiting(1))])
    (owner,) = (one for one in engines.values() if one.queue)
    tell(engines, [PodSeen(waiting(1, conditions=REFUSED))], now=10_000)
    for turns, expected in ((1, 2), (2, 3)):
        for one in engines.values():
            one.hear(one.share.due(10_000 + turns * SPREAD_MS))
        assert sum(bool(one.queue) for one in engines.values()) == expected
    assert [one.share.speaks_for("default/p1") for one in engines.values()].count(True) == 1
    assert owner.share.speaks_for("default/p1")
    # One of them places it on a node of its own: the others let go of it.
    tell(engines, [PodSeen(waiting(1, node_name="n2-1"))])
    assert all(not one.queue for one in engines.values())
    assert sum(len(one.counted) for one in engines.values()) == 1


def test_a_pod_that_asks_for_a_pool_that_is_not_there_is_somebodys_all_the_same() -> None:
    engines = fleet(pool_label="pool")
    tell(engines, pools(3))
    tell(engines, [PodSeen(waiting(1, node_selector={"pool": "nowhere"}))])
    assert sum(bool(one.queue) for one in engines.values()) == 1


def test_a_node_that_changes_its_pool_goes_over_with_its_pods() -> None:
    engines = fleet(pool_label="pool")
    tell(engines, pools(3))
    tell(engines, [PodSeen(waiting(1, node_name="n0-0"))])
    tell(engines, [NodeSeen(node("n0-0", labels={"pool": "pool-1"}))])
    (owner,) = (one for one in engines.values() if "n0-0" in one.nodes)
    assert "n1-0" in owner.nodes
    assert [one.counted for one in engines.values()].count({"default/p1"}) == 1
    assert owner.counted == {"default/p1"}


def test_with_more_members_than_pools_several_have_one_pool_and_divide_its_pods() -> None:
    engines = fleet(pool_label="pool")
    tell(engines, pools(1))
    tell(engines, [PodSeen(waiting(number)) for number in range(30)])
    assert all(len(one.nodes) == 4 and one.queue for one in engines.values())
    assert sum(len(one.queue) for one in engines.values()) == 30
