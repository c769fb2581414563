"""Some worlds with devices, in which nothing may go wrong. `situate sim --devices --seeds 1..1000` runs many."""

import pytest

from situate.sim.world import World, run

CHANGES = 600
AT_A_TIME = 6


@pytest.mark.parametrize(
    "first", range(1, 37, AT_A_TIME), ids=lambda first: f"seeds {first} to {first + AT_A_TIME - 1}"
)
def test_no_device_is_given_twice_or_lost(first: int) -> None:
    worlds = [World(seed, changes=CHANGES, devices=True) for seed in range(first, first + AT_A_TIME)]
    outcomes = [world.run() for world in worlds]
    assert [f"seed {one.seed}: {line}" for one in outcomes for line in one.violations] == []
    assert sum(one.rescued for one in outcomes) == 0
    assert sum(world.devices.checker.allocations for world in worlds if world.devices is not None) > 0


def test_the_same_seed_gives_the_same_world() -> None:
    assert run(8, changes=200, devices=True).digest == run(8, changes=200, devices=True).digest


def test_some_worlds_have_devices_and_their_servers_differ() -> None:
    worlds = [World(seed) for seed in range(1, 41)]
    guarded = [world.devices.checker.guarded for world in worlds if world.devices is not None]
    assert 5 <= len(guarded) <= 20
    assert {True, False} == set(guarded)
