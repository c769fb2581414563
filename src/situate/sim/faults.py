"""What goes wrong in a world: drawn from its seed, some kinds on and some off, so that each world has its own trouble.

With every kind on at once they hide one another; a world in which nothing fails but binds finds what is wrong there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random
from types import MappingProxyType
from typing import Final

ON: Final = 0.45
"""How likely a kind of fault is to be there at all."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Chances from 0 to 1, each of one event; 0: this world does not have that kind."""

    bind_fails: float = 0.0
    """A bind is answered with a passing failure, and was not carried out."""
    bind_is_refused: float = 0.0
    """A bind is answered with a failure for good, and was not carried out."""
    bind_is_unsure: float = 0.0
    """A bind is answered with a failure, and was carried out all the same."""
    answer_is_lost: float = 0.0
    """A bind or an eviction was carried out, and nobody says so."""
    answer_comes_twice: float = 0.0
    answer_is_late: float = 0.0
    evict_fails: float = 0.0
    volumes_fail: float = 0.0
    server_is_slow: float = 0.0
    """What was asked for is carried out much later."""
    rival_binds: float = 0.0
    """Another scheduler binds a pod that waits for us."""
    news_is_late: float = 0.0
    news_is_merged: float = 0.0
    """Several changes of an object that were not delivered yet come as one, as after a watch was cut."""
    scheduler_restarts: float = 0.0
    node_dies: float = 0.0
    pod_is_deleted: float = 0.0
    lingers: float = 0.0
    """A pod takes long to stop."""
    list_is_stale: float = 0.0
    """A scheduler that starts is shown the cluster as it was a while ago, and what happened since comes as news."""
    volumes_are_silent: float = 0.0
    """Nobody answers, whether the volumes were bound or not."""
    bind_is_lost: float = 0.0
    """A bind is not carried out, and nobody says so."""
    extender_fails: float = 0.0
    extender_is_silent: float = 0.0
    extender_is_late: float = 0.0
    extender_lies: float = 0.0

    def named(self) -> str:
        return " ".join(one.name for one in fields(self) if getattr(self, one.name))


MOST: Final = MappingProxyType(
    {
        "bind_fails": 0.3,
        "bind_is_refused": 0.15,
        "bind_is_unsure": 0.2,
        "answer_is_lost": 0.3,
        "answer_comes_twice": 0.5,
        "answer_is_late": 0.3,
        "evict_fails": 0.5,
        "volumes_fail": 0.3,
        "server_is_slow": 0.6,
        "rival_binds": 0.2,
        "news_is_late": 0.3,
        "news_is_merged": 0.5,
        "scheduler_restarts": 0.01,
        "node_dies": 0.05,
        "pod_is_deleted": 0.3,
        "lingers": 0.5,
        "list_is_stale": 0.8,
        "volumes_are_silent": 0.2,
        "extender_fails": 0.3,
        "extender_is_silent": 0.2,
        "extender_is_late": 0.4,
        "extender_lies": 0.6,
        "bind_is_lost": 0.2,
    }
)
"""The highest chance that is drawn for each."""

CALM: Final = Faults()


def draw_faults(rng: Random) -> Faults:
    """The faults of one world."""
    drawn = {name: rng.uniform(0.1, 1.0) * most for name, most in MOST.items() if rng.random() < ON}
    return replace(CALM, **drawn)
