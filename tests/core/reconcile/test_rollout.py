"""Rolling updates: what holds at every single step, whatever the order in which controllers run."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.reconcile.world import Raw, World, is_live, is_ready, template, workload
from situate.core.model.apps import Deployment, DeploymentSpec, RollingUpdate, UpdateStrategy
from situate.core.reconcile.rollout import max_surge, max_unavailable

PARTS = st.one_of(st.integers(0, 4), st.integers(0, 100).map(lambda n: f"{n}%"))


def limits(replicas: int, surge: int | str | None, away: int | str | None) -> tuple[int, int]:
    rule = RollingUpdate(max_surge=surge, max_unavailable=away)
    one = Deployment(spec=DeploymentSpec(replicas=replicas, strategy=UpdateStrategy(rolling_update=rule)))
    return max_surge(one), max_unavailable(one)


@pytest.mark.parametrize(
    "replicas, surge, away, expected",
    [
        pytest.param(10, None, None, (3, 2), id="a quarter each by default, surge rounded up and absence down"),
        pytest.param(1, None, None, (1, 0), id="a single pod is surged over"),
        pytest.param(4, 0, 0, (0, 1), id="if neither is allowed, one may be absent, or nothing could be replaced"),
        pytest.param(3, "100%", "0%", (3, 0), id="percentages of all and nothing"),
        pytest.param(2, 1, 7, (1, 2), id="no more can be absent than there are"),
        pytest.param(0, None, None, (0, 0), id="nobody of none"),
    ],
)
def test_how_many_may_be_too_many_or_absent(
    replicas: int, surge: int | str | None, away: int | str | None, expected: tuple[int, int]
) -> None:
    assert limits(replicas, surge, away) == expected


def watcher(world: World, most: int, least: int) -> Callable[[], None]:
    def look() -> None:
        pods = world.pods(app="web")
        live = [pod for pod in pods if is_live(pod)]
        ready = [pod for pod in live if is_ready(pod)]
        assert len(live) <= most, f"{len(live)} pods, {most} allowed"
        assert len(ready) >= least, f"{len(ready)} pods available, {least} needed"

    return look


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    replicas=st.integers(1, 6),
    surge=PARTS,
    away=PARTS,
    ready_after=st.integers(2, 4),
    grace=st.integers(0, 2),
    changes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=3),
)
def test_a_rolling_update_never_has_too_many_pods_nor_too_few_available(
    seed: int,
    replicas: int,
    surge: int | str,
    away: int | str,
    ready_after: int,
    grace: int,
    changes: list[tuple[int, int]],
) -> None:
    """Templates change in the middle of rollouts too, and go back to ones there were before."""
    world = World(seed, ready_after=ready_after, grace=grace)
    strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": away}}
    world.create(workload("Deployment", replicas=replicas, strategy=strategy, template=template("v0")))
    world.run(8)
    over, absent = limits(replicas, surge, away)
    world.watchers.append(watcher(world, replicas + over, replicas - absent))
    for image, ticks in changes:
        body = world.find("Deployment", "web")
        if body["spec"]["template"] != template(f"v{image}"):
            world.patch("Deployment", "web", {"spec": {"template": template(f"v{image}")}})
        for _ in range(ticks):
            world.one_pass()
            world.tick()
    world.run(12 * replicas)
    images = [pod["spec"]["containers"][0]["image"] for pod in world.pods()]
    assert images == [f"v{changes[-1][0]}"] * replicas
    assert world.find("Deployment", "web")["status"]["updatedReplicas"] == replicas


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), min_size=1, max_size=4),
    odds=st.integers(0, 20),
)
def test_whatever_happens_on_the_way_a_deployment_comes_to_the_size_it_says(
    seed: int, sizes: list[tuple[int, int]], odds: int
) -> None:
    """Pods fail by chance, sizes and templates change at any time, and in the end all is as it should be."""
    world = World(seed)
    world.create(workload("Deployment", replicas=3))
    world.fails = lambda _pod: world.dice.randrange(100) < odds
    for at, (size, ticks) in enumerate(sizes):
        patch: Raw = {"spec": {"replicas": size}}
        if world.dice.random() < 0.5:
            patch["spec"]["template"] = template(f"v{at + 2}")
        if world.find("Deployment", "web")["spec"]["replicas"] != size or "template" in patch["spec"]:
            world.patch("Deployment", "web", patch)
        for _ in range(ticks):
            world.one_pass()
            world.tick()
    world.fails = lambda _pod: False
    world.run(60)
    live = [pod for pod in world.pods() if is_live(pod)]
    assert len(live) == sizes[-1][0]
    status = world.find("Deployment", "web")["status"]
    assert status.get("availableReplicas", 0) == status.get("replicas", 0) == sizes[-1][0]
