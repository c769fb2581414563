"""When a node has to say again how it is: at once, soon, or only so that it was said. Pure.

Its lease says that it lives. The Node itself is read by everybody who places pods, and is written as rarely as can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["LOOK_S", "SMALL_S", "STATUS_S", "next_due"]

LOOK_S: Final = 10.0
"""How often the machine is looked at."""
SMALL_S: Final = 60.0
"""What is no change of a condition waits until so long after the last report; what comes meanwhile goes with it."""
STATUS_S: Final = 300.0
"""How long a node says nothing, if nothing has changed."""


def next_due(said: Mapping[str, Any] | None, now: Mapping[str, Any], said_at: float) -> float:
    """When the status, as it is now, is to be reported; `said` as it was last, at that time. -inf: at once."""
    if said is None or _conditions(said) != _conditions(now):
        return float("-inf")
    rest = [{name: value for name, value in one.items() if name != "conditions"} for one in (said, now)]
    return said_at + (STATUS_S if rest[0] == rest[1] else SMALL_S)


def _conditions(status: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return sorted((one["type"], one["status"], one.get("reason", "")) for one in status.get("conditions", ()))
