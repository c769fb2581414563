"""Values of API objects: times, numbers or percentages, and conditions."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from situate.core.model.apps import IntOrPercent
from situate.core.model.base import INT32_MAX
from situate.core.model.integers import saturated_int64
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, condition_of
from situate.core.model.timestamp import TimestampError, epoch_ms

SECOND: Millis = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_time(now: Millis) -> str:
    """RFC 3339 with whole seconds, as the API server stores it."""
    return (_EPOCH + timedelta(seconds=now // SECOND)).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str | None) -> Millis | None:
    """None for no time or an invalid one."""
    if text is None:
        return None
    try:
        return epoch_ms(text)
    except TimestampError:
        return None


def scaled_value(part: IntOrPercent | None, of: int, *, up: bool) -> int:
    """A number, or a percentage of `of` rounded up or down; at most int32's maximum. 0 for None and invalid values."""
    if part is None:
        return 0
    if isinstance(part, int):
        return part
    digits = part.removesuffix("%")
    percent = None if digits == part or digits[:1] in ("+", "-") else saturated_int64(digits)
    if percent is None:
        return 0
    whole = percent * of
    return min(-(-whole // 100) if up else whole // 100, INT32_MAX)


def with_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """Replace the condition of the same type, unless status and reason are unchanged.

    The transition time stays while the status does.
    """
    old = condition_of(conditions, new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return conditions
        new = replace(new, last_transition_time=old.last_transition_time)
    return (*without_condition(conditions, new.type), new)


def without_condition(conditions: tuple[Condition, ...], kind: str) -> tuple[Condition, ...]:
    if condition_of(conditions, kind) is None:
        return conditions
    return tuple(one for one in conditions if one.type != kind)
