"""DaemonSets: one pod on each node that they are for, and how it is renewed."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.reconcile.world import Raw, World, is_live, is_ready, template, workload


def with_nodes(count: int = 3, seed: int = 0, **spec: Any) -> World:
    world = World(seed)
    for at in range(count):
        add_node(world, f"n{at}")
    world.create(workload("DaemonSet", **spec))
    return world


def add_node(world: World, name: str, *taints: Raw, **labels: str) -> None:
    meta = {"name": name, "labels": labels}
    world.create({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": list(taints)}})


def taint(key: str, effect: str = "NoSchedule") -> Raw:
    return {"key": key, "effect": effect}


def where(world: World) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "?") for pod in world.pods() if is_live(pod))


def images(world: World) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in world.pods() if is_live(pod)]


def status(world: World) -> Raw:
    found: Raw = world.find("DaemonSet", "web")["status"]
    return found


def test_every_node_gets_one_pod_that_is_tied_to_it() -> None:
    world = with_nodes()
    world.run(5)
    assert where(world) == ["n0", "n1", "n2"]
    assert (status(world)["desiredNumberScheduled"], status(world)["numberAvailable"]) == (3, 3)
    affinity = world.pods()[0]["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [field["key"] for term in terms for field in term["matchFields"]] == ["metadata.name"]


def test_a_node_that_comes_gets_one_and_one_that_goes_takes_its_own_along() -> None:
    world = with_nodes(2)
    world.run(4)
    add_node(world, "n2")
    world.gone(world.find("Node", "n0", ""))
    world.run(5)
    assert where(world) == ["n1", "n2"]


def test_pods_of_a_daemon_set_run_where_others_are_sent_away() -> None:
    world = World()
    add_node(
        world, "sick", taint("node.kubernetes.io/not-ready", "NoExecute"), taint("node.kubernetes.io/disk-pressure")
    )
    add_node(world, "cordoned", taint("node.kubernetes.io/unschedulable"))
    add_node(world, "mine", taint("example.com/mine"))
    world.create(workload("DaemonSet"))
    world.run(4)
    assert where(world) == ["cordoned", "sick"]


@pytest.mark.parametrize(
    "effect, stays",
    [
        pytest.param("NoSchedule", True, id="a taint against new pods lets those stay that are there"),
        pytest.param("NoExecute", False, id="a taint against all sends them away"),
    ],
)
def test_a_taint_that_comes_later(effect: str, stays: bool) -> None:
    world = with_nodes(1)
    world.run(4)
    world.patch("Node", "n0", {"spec": {"taints": [taint("example.com/x", effect)]}}, namespace="")
    world.run(4)
    assert (where(world) == ["n0"]) == stays
    assert status(world)["numberMisscheduled"] == int(stays)


def test_selectors_and_affinity_say_which_nodes_it_is_for() -> None:
    world = World()
    add_node(world, "a", disk="ssd", zone="z1")
    add_node(world, "b", disk="ssd", zone="z2")
    add_node(world, "c", disk="hdd", zone="z1")
    match = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [match]}}
    spec = template(nodeSelector={"disk": "ssd"}, affinity={"nodeAffinity": required})
    world.create(workload("DaemonSet", template=spec))
    world.run(4)
    assert where(world) == ["a"]


def test_a_node_that_no_longer_fits_loses_its_pod() -> None:
    world = World()
    add_node(world, "a", disk="ssd")
    world.create(workload("DaemonSet", template=template(nodeSelector={"disk": "ssd"})))
    world.run(4)
    world.patch("Node", "a", {"metadata": {"labels": {"disk": "hdd"}}}, namespace="")
    world.run(3)
    assert world.pods() == []


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 6),
    surge=st.one_of(st.just(0), st.integers(1, 3), st.sampled_from(["30%", "100%"])),
    away=st.one_of(st.integers(1, 3), st.sampled_from(["40%", "100%"])),
)
def test_an_update_leaves_enough_nodes_served_at_every_step(
    seed: int, count: int, surge: int | str, away: int | str
) -> None:
    rule = {"maxSurge": surge} if surge else {"maxUnavailable": away}
    world = with_nodes(count, seed, updateStrategy={"rollingUpdate": rule})
    world.run(5)
    part: int | str = 0 if surge else away
    absent = part if isinstance(part, int) else -(-int(part[:-1]) * count // 100)

    def look() -> None:
        live = [pod for pod in world.pods() if is_live(pod)]
        served = {pod["spec"]["nodeName"] for pod in live if is_ready(pod)}
        assert len(served) >= count - absent
        assert len(live) <= 2 * count if surge else len(live) <= count

    world.watchers.append(look)
    world.patch("DaemonSet", "web", {"spec": {"template": template("v2")}})
    for _ in range(8 * count):
        world.one_pass()
        world.tick()
    world.run(3)
    assert images(world) == ["v2"] * count
    assert status(world)["updatedNumberScheduled"] == count


def test_on_delete_only_what_somebody_deletes_is_updated() -> None:
    world = with_nodes(2, updateStrategy={"type": "OnDelete"})
    world.run(4)
    world.patch("DaemonSet", "web", {"spec": {"template": template("v2")}})
    world.run(4)
    assert images(world) == ["v1", "v1"]
    world.delete("Pod", world.names("Pod")[0])
    world.run(4)
    assert sorted(images(world)) == ["v1", "v2"]


def test_a_pod_that_failed_is_replaced_but_not_at_once() -> None:
    world = with_nodes(1)
    world.run(3)
    name = world.names("Pod")[0]
    world.patch("Pod", name, {"status": {"phase": "Failed"}})
    world.settle()
    assert world.names("Pod") == [name]
    world.now = max(world.requeue_at)
    world.run(4)
    assert where(world) == ["n0"]
    assert world.names("Pod") != [name]
    assert "FailedDaemonPod" in world.reasons()


def test_revisions_are_numbered_and_old_ones_forgotten() -> None:
    world = with_nodes(1, revisionHistoryLimit=1)
    for image in ("v2", "v3", "v4"):
        world.run(8)
        world.patch("DaemonSet", "web", {"spec": {"template": template(image)}})
    world.run(8)
    assert sorted(one["revision"] for one in world.all("ControllerRevision")) == [3, 4]
    digest = world.pods()[0]["metadata"]["labels"]["controller-revision-hash"]
    assert f"web-{digest}" in world.names("ControllerRevision")


def test_when_it_is_deleted_nothing_of_it_stays() -> None:
    world = with_nodes(2)
    world.run(4)
    world.delete("DaemonSet", "web", propagation="Foreground")
    world.run(4)
    assert [place[0] for place in world.bodies] == ["Node", "Node"]
