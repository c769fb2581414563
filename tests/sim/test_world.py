"""A world follows from its seed, down to the byte."""

import os
import subprocess
import sys

import pytest

from situate.sim.faults import MOST, draw_faults
from situate.sim.timeline import Timeline
from situate.sim.world import World, run

DIGESTS = "from situate.sim.world import run\nprint([run(seed, changes=300).digest for seed in (4, 9, 24)])"


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
    with pytest.raises(ValueError, match="is over"):
        Timeline().after(-1, print)
