"""The loss of a zone or a node: who finds another place, and who does not."""

import pytest

from situate.core.plan.survive import Loss, domains, lose, losses
from yards import GI, ZONE, App, Host, Yard, random_yard


def three_zones(*apps: App, cpu: int = 4_000) -> Yard:
    hosts = {f"n{zone}": Host(f"n{zone}", cpu, 64 * GI, 110, zone) for zone in "abc"}
    return Yard(hosts, {app.name: app for app in apps})


def without(yard: Yard, zone: str, *, nodes_stay: bool = False) -> Loss:
    return lose(yard.sandbox(), ZONE, zone, [f"n{zone}"], nodes_stay=nodes_stay)


def test_pods_of_a_lost_zone_go_where_there_is_room() -> None:
    yard = three_zones(App("web", 1_000, GI))
    yard.put("web-0", "web", "na")
    told = without(yard, "a")
    assert [(one.key, one.before, one.node != "na") for one in told.moved] == [("default/web-0", "na", True)]
    assert told.lost == ()


def test_who_finds_no_place_is_told_why() -> None:
    yard = three_zones(App("web", 3_000, GI))
    for zone in "abc":
        yard.put(f"web-{zone}", "web", f"n{zone}")
    (lost,) = without(yard, "a").lost
    assert lost.key == "default/web-a"
    assert lost.message.startswith("0/2 nodes are available: 2 Insufficient cpu. ")


def test_a_spread_over_zones_that_are_still_registered_keeps_pods_out() -> None:
    yard = three_zones(App("web", 500, GI, skew=1))
    for zone in "abc":
        yard.put(f"web-{zone}", "web", f"n{zone}")
    assert without(yard, "a").lost == ()
    assert [one.key for one in without(yard, "a", nodes_stay=True).lost] == ["default/web-a"]


def test_pods_that_belong_to_the_node_are_not_missed() -> None:
    yard = three_zones(App("agent", 500, GI, owner="DaemonSet"))
    yard.put("agent-a", "agent", "na")
    assert (without(yard, "a").moved, without(yard, "a").lost) == ((), ())


def test_a_pod_that_nobody_makes_again_is_lost() -> None:
    yard = three_zones(App("alone", 500, GI, owner=""))
    yard.put("alone", "alone", "na")
    assert [one.message for one in without(yard, "a").lost] == ["declares no controller: nothing recreates it"]


def test_one_that_is_more_important_drives_another_out_and_that_one_is_lost() -> None:
    from msgspec.structs import replace

    yard = three_zones(App("vital", 4_000, GI), App("plain", 4_000, GI))
    for name, app, host in (("vital", "vital", "na"), ("plain-b", "plain", "nb"), ("plain-c", "plain", "nc")):
        yard.put(name, app, host)
    sandbox = yard.sandbox()
    vital = sandbox.pods["default/vital"]
    sandbox.cluster.remove_pod("default/vital")
    sandbox.pods["default/vital"] = replace(vital, spec=replace(vital.spec, priority=100))
    sandbox.cluster.add_pod(sandbox.pods["default/vital"])
    told = lose(sandbox, ZONE, "a", ["na"])
    assert [(one.key, len(one.evicts)) for one in told.moved] == [("default/vital", 1)]
    assert [one.evicted_by for one in told.lost] == ["default/vital"]


@pytest.mark.parametrize("seed", range(4))
def test_every_loss_is_undone_and_every_place_found_is_one_by_the_rules(seed: int) -> None:
    yard = random_yard(seed, 18, fill=0.7)
    sandbox = yard.sandbox()
    before = {key: pod.spec.node_name for key, pod in sandbox.pods.items()}
    for by in (ZONE, "node"):
        told = list(losses(sandbox, by))
        assert [one.domain for one in told] == list(domains(sandbox, by))
        for loss in told:
            _check(yard, loss)
    assert {key: sandbox.cluster.node_of(key) for key in before} == before


def _check(yard: Yard, loss: Loss) -> None:
    """By the rules, on the hosts that are left."""
    left = Yard({name: host for name, host in yard.hosts.items() if name not in loss.nodes}, yard.apps)
    for name, host in yard.where.items():
        if host in left.hosts:
            left.put(name, yard.of[name], host)
    for one in loss.moved:
        name = one.key.partition("/")[2]
        app = yard.apps[yard.of[name]]
        assert left.refusal(app, one.node) == "", (loss.domain, one)
        left.put(name, app.name, one.node)
    for one in loss.lost:
        app = yard.apps[yard.of[one.key.partition("/")[2]]]
        assert not app.owner or all(left.refusal(app, host) for host in left.hosts)
