"""A world follows from its seed, down to the byte."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields

import pytest

from situate.core.config.validate import validate
from situate.sim.faults import Faults, draw_faults
from situate.sim.settings import SchedulerSet
from situate.sim.timeline import Timeline
from situate.sim.world import World, run

DIGESTS = "from situate.sim.world import run\nprint([run(seed, changes=300).digest for seed in (4, 9, 24)])"


MOST = {one.name: one.metadata["most"] for one in fields(Faults)}


def digests(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", DIGESTS], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_same_seed_gives_the_same_bytes_under_any_hash_seed() -> None:
    assert digests("1") == digests("2") != ""


def test_the_same_seed_gives_the_same_trace_twice() -> None:
    traces: list[list[str]] = [[], []]
    outcomes = [run(5, changes=400, trace=trace.append) for trace in traces]
    assert traces[0] == traces[1] != []
    assert outcomes[0] == outcomes[1]


def test_two_seeds_give_two_worlds() -> None:
    assert run(1, changes=50).digest != run(2, changes=50).digest


def test_every_kind_of_fault_is_on_in_some_worlds_and_off_in_others() -> None:
    drawn = [World(seed).outcome.faults for seed in range(40)]
    for kind in MOST:
        on = [getattr(faults, kind) > 0 for faults in drawn]
        assert any(on), kind
        assert not all(on), kind


@pytest.mark.parametrize(
    "has",
    [
        pytest.param(lambda cast: cast.kind == "its own pods", id="another scheduler with pods of its own"),
        pytest.param(lambda cast: cast.kind == "the same pods", id="another scheduler for the same pods"),
        pytest.param(lambda cast: cast.ours.extenders, id="extenders"),
        pytest.param(lambda cast: any(one.bind_verb for one in cast.ours.extenders), id="an extender that binds"),
        pytest.param(lambda cast: any(one.ignorable for one in cast.ours.extenders), id="one that may be ignored"),
        pytest.param(lambda cast: len(cast.names) > 1, id="two profiles"),
        pytest.param(lambda cast: any(one.node_sample for one in cast.ours.profiles), id="nodes drawn by key"),
        pytest.param(lambda cast: cast.ours.percentage_of_nodes_to_score, id="a percentage of nodes"),
        pytest.param(lambda cast: cast.ours.pod_max_backoff_seconds != 10, id="another backoff"),
    ],
)
def test_among_the_worlds_some_have_it_and_some_do_not(has: Callable[[SchedulerSet], object]) -> None:
    found = [bool(has(World(seed).cast)) for seed in range(1, 101)]
    assert 3 <= sum(found) <= 60


def test_what_is_drawn_is_a_configuration_that_would_be_accepted() -> None:
    for seed in range(1, 101):
        cast = World(seed).cast
        assert validate(cast.ours) == []
        assert cast.other is None or validate(cast.other) == []


def test_the_flush_has_something_to_put_back_in_many_worlds_and_rescues_nobody() -> None:
    outcomes = [run(seed, changes=300) for seed in range(1, 7)]
    assert sum(one.flushed for one in outcomes) > 0
    assert sum(one.rescued for one in outcomes) == 0


def test_a_chance_that_is_drawn_is_at_most_what_is_said() -> None:
    from random import Random

    faults = draw_faults(Random(7))
    assert all(0 <= getattr(faults, kind) <= most for kind, most in MOST.items())


def test_things_happen_at_their_time_and_those_of_one_moment_in_the_order_asked() -> None:
    timeline = Timeline()
    happened: list[str] = []
    timeline.after(5, happened.append, "c")
    timeline.after(3, happened.append, "a")
    timeline.after(3, happened.append, "b")
    timeline.advance()
    assert (timeline.now, happened) == (3, ["a", "b"])
    timeline.advance()
    assert (timeline.now, happened) == (5, ["a", "b", "c"])


def test_nothing_can_be_asked_for_in_the_past() -> None:
    with pytest.raises(ValueError, match="a delay of -1 ms is in the past"):
        Timeline().after(-1, print)
