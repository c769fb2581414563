"""Durations as kubectl prints them: `5m12s`, `3h`, `2y10d`. At most two units, and the finer the shorter the time."""

from typing import Final

from situate.core.model.timestamp import TimestampError, epoch_ms

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"

_NS_PER_MS: Final = 1_000_000
_MS_PER_S: Final = 1_000
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY


# Below this many seconds: the unit, and the finer unit next to it, if any.
_STEPS: Final = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def human_duration(milliseconds: int) -> str:
    """A duration for people. Clock skew of up to two seconds prints as 0s."""
    if milliseconds < 0:
        return INVALID if milliseconds <= -2 * _MS_PER_S else "0s"
    seconds = milliseconds // _MS_PER_S
    for limit, (unit, letter), finer in _STEPS:
        if seconds < limit:
            rest = seconds % unit // finer[0] if finer else 0
            return f"{seconds // unit}{letter}{rest}{finer[1]}" if finer and rest else f"{seconds // unit}{letter}"
    return f"{seconds // _YEAR}y"


def since(timestamp: str | None, now_ns: int) -> str:
    """The time from an object's timestamp to now, or `<unknown>`."""
    if not timestamp:
        return UNKNOWN
    try:
        return human_duration(now_ns // _NS_PER_MS - epoch_ms(timestamp))
    except TimestampError:
        return UNKNOWN


def between(start: str, end: str) -> str:
    try:
        return human_duration(epoch_ms(end) - epoch_ms(start))
    except TimestampError:
        return UNKNOWN
