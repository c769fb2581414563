"""Numbers that may be percentages, as in maxUnavailable: 3 or "25%"."""

from situate.core.model.integers import saturated_int64
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import percent

Portion = int | str
ALL = 100


def check_int_or_percent(value: Portion, path: str, causes: Causes) -> None:
    """Check a whole number or a percentage, which must not be negative."""
    if isinstance(value, int):
        causes.at_least_zero(value, path)
    else:
        causes.check(percent, value, path)


def check_at_most_100_percent(value: Portion, path: str, causes: Causes) -> None:
    if isinstance(value, str) and not percent(value) and (saturated_int64(value[:-1]) or 0) > ALL:
        causes.invalid(path, value, "must not be greater than 100%")


def number_in(value: Portion) -> int:
    """The number of pods or percent, to be compared with 0. Invalid text is 0."""
    if isinstance(value, int):
        return value
    return saturated_int64(value[:-1] if not percent(value) else value) or 0
