"""A drain: who moves where, in which wave, and who cannot."""

import pytest

from situate.core.plan.drain import DrainResult, drain
from situate.core.plan.eviction_rules import DrainRules
from yards import GI, App, Host, Yard, random_yard

WEB = App("web", 1_000, GI)


def yard_of(*apps: App, hosts: int = 3, cpu: int = 4_000) -> Yard:
    return Yard(
        {f"n{at}": Host(f"n{at}", cpu, 64 * GI, 110, "a") for at in range(hosts)}, {app.name: app for app in apps}
    )


def drained(yard: Yard, *names: str, rules: DrainRules = DrainRules()) -> DrainResult:  # noqa: B008
    return drain(yard.sandbox(), names, rules)


def told(result: DrainResult) -> list[list[str]]:
    return [[one.key.partition("/")[2] for one in wave] for wave in result.waves]


def test_pods_go_to_nodes_that_are_not_drained() -> None:
    yard = yard_of(WEB)
    yard.put("web-0", "web", "n0")
    yard.put("web-1", "web", "n1")
    result = drained(yard, "n0", "n1")
    assert result.complete
    assert [one.node for wave in result.waves for one in wave] == ["n2", "n2"]


def test_a_budget_makes_waves() -> None:
    yard = yard_of(App("web", 1_000, GI, allowed=2), hosts=4)
    for at in range(4):
        yard.put(f"web-{at}", "web", "n0")
    result = drained(yard, "n0")
    assert told(result) == [["web-0", "web-1"], ["web-2", "web-3"]]
    assert result.complete


def test_a_budget_that_allows_nothing_keeps_its_pods() -> None:
    yard = yard_of(App("web", 1_000, GI, allowed=0), WEB.__class__("free", 1_000, GI))
    yard.put("web-0", "web", "n0")
    yard.put("free-0", "free", "n0")
    result = drained(yard, "n0")
    assert told(result) == [["free-0"]]
    (left,) = result.refused
    assert left.why.startswith("Cannot evict pod as it would violate the pod's disruption budget.")


def test_a_pod_that_finds_no_place_does_not_give_its_budget_back() -> None:
    yard = yard_of(App("web", 3_000, GI, allowed=1), hosts=2)
    yard.put("web-0", "web", "n0")
    yard.put("web-1", "web", "n1")
    result = drained(yard, "n0")
    assert [one.key for one in result.unschedulable] == ["default/web-0"]
    assert not result.complete


@pytest.mark.parametrize(
    "app, rules, where",
    [
        pytest.param(App("x", 100, GI, owner="DaemonSet"), DrainRules(), "stay", id="a DaemonSet's pod stays"),
        pytest.param(App("x", 100, GI, owner=""), DrainRules(), "refused", id="one without a controller needs --force"),
        pytest.param(
            App("x", 100, GI, owner=""), DrainRules(force=True), "ended", id="with --force it is deleted for good"
        ),
        pytest.param(
            App("x", 100, GI),
            DrainRules(local=("default/x-0",)),
            "refused",
            id="local storage needs --delete-emptydir-data",
        ),
    ],
)
def test_some_pods_do_not_move(app: App, rules: DrainRules, where: str) -> None:
    yard = yard_of(app)
    yard.put("x-0", "x", "n0")
    result = drained(yard, "n0", rules=rules)
    assert [left.key for left in getattr(result, where)] == ["default/x-0"]
    assert told(result) == []


def test_local_storage_may_go_if_somebody_says_so() -> None:
    yard = yard_of(App("x", 100, GI))
    yard.put("x-0", "x", "n0")
    result = drained(yard, "n0", rules=DrainRules(local=("default/x-0",), delete_emptydir_data=True))
    assert told(result) == [["x-0"]]


@pytest.mark.parametrize("seed", range(6))
def test_every_wave_keeps_to_budgets_and_every_place_to_the_rules(seed: int) -> None:
    yard = random_yard(seed, 30, fill=0.6)
    names = list(yard.hosts)[: 3 + seed]
    result = drained(yard, *names)
    after = yard.copy()
    for wave in result.waves:
        taken: dict[str, int] = {}
        for one in wave:
            name = one.key.partition("/")[2]
            app = yard.apps[yard.of[name]]
            assert yard.movable(name)
            taken[app.name] = taken.get(app.name, 0) + 1
            after.drop(name)
            if one.node:
                assert one.node not in names
                assert after.refusal(app, one.node) == ""
                after.put(name, app.name, one.node)
        assert all(count <= (yard.apps[name].allowed or count) for name, count in taken.items())
    gone = {one.key for wave in result.waves for one in wave}
    left = {one.key for those in (result.refused, result.stay, result.ended) for one in those}
    assert gone | left == {f"default/{name}" for host in names for name in yard.on(host)}
