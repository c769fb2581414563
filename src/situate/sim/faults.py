"""The faults of a world, drawn from its seed. Each kind is on or off, so that every world has its own mix.

If all kinds were on at once, they would hide one another.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, Final

ON: Final = 0.45
"""The probability that a kind of fault is on."""


def _up_to(most: float) -> Any:
    """A probability that is drawn up to `most`."""
    return field(default=0.0, metadata={"most": most})


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities per event; 0: the world does not have this kind. New kinds go to the end, in drawing order."""

    bind_fails: float = _up_to(0.3)
    """The bind fails with a transient error and does not happen."""
    bind_is_refused: float = _up_to(0.15)
    """The bind fails for good and does not happen."""
    bind_is_unsure: float = _up_to(0.2)
    """The bind fails with a transient error, but happens."""
    answer_is_lost: float = _up_to(0.3)
    """A bind or an eviction happens, but is not answered."""
    answer_comes_twice: float = _up_to(0.5)
    answer_is_late: float = _up_to(0.3)
    evict_fails: float = _up_to(0.5)
    volumes_fail: float = _up_to(0.3)
    server_is_slow: float = _up_to(0.6)
    """The server carries a request out much later."""
    rival_binds: float = _up_to(0.2)
    """Another scheduler binds a pod that waits for ours."""
    news_is_late: float = _up_to(0.3)
    news_is_merged: float = _up_to(0.5)
    """Undelivered changes of an object come as one, as after a broken watch."""
    scheduler_restarts: float = _up_to(0.01)
    node_dies: float = _up_to(0.05)
    pod_is_deleted: float = _up_to(0.3)
    lingers: float = _up_to(0.5)
    """A pod takes long to stop."""
    list_is_stale: float = _up_to(0.8)
    """A scheduler that starts lists an old state; the rest comes as changes."""
    volumes_are_silent: float = _up_to(0.2)
    """Nobody answers whether the volumes were bound."""
    extender_fails: float = _up_to(0.3)
    extender_is_silent: float = _up_to(0.2)
    extender_is_late: float = _up_to(0.4)
    extender_lies: float = _up_to(0.6)
    bind_is_lost: float = _up_to(0.2)
    """The bind does not happen, and is not answered."""
    claims_fail: float = _up_to(0.2)
    """A request about a claim for devices fails and is not carried out."""
    claims_conflict: float = _up_to(0.4)
    """Somebody else writes a claim after the scheduler has read it."""
    claims_are_unsure: float = _up_to(0.2)
    """Nobody knows whether a claim was written."""
    claims_are_silent: float = _up_to(0.1)
    """Nobody answers whether the claims of a pod were written."""
    claim_is_deleted: float = _up_to(0.3)
    claim_controller_is_late: float = _up_to(0.3)
    claim_controller_dies: float = _up_to(0.02)

    def named(self) -> str:
        return " ".join(one.name for one in fields(self) if getattr(self, one.name))


CALM: Final = Faults()


def draw_faults(rng: Random) -> Faults:
    drawn = {one.name: rng.uniform(0.1, 1.0) * one.metadata["most"] for one in fields(Faults) if rng.random() < ON}
    return Faults(**drawn)
