"""Timestamps: RFC 3339 text to milliseconds since the epoch."""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(\.\d{1,18})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CACHE_SIZE = 4_096


class TimestampError(ValueError):
    """The text is not an RFC 3339 time."""


@lru_cache(maxsize=_CACHE_SIZE)
def epoch_ms(text: str) -> int:
    """Milliseconds since 1970-01-01T00:00:00Z; finer parts are dropped."""
    shape = _RFC3339.fullmatch(text)
    if shape is None:
        raise TimestampError(f'cannot parse "{text}" as an RFC 3339 time')
    year, month, day, hour, minute, second = (int(part) for part in shape.groups()[:6])
    try:
        when = datetime(year, month, day, hour, minute, second, tzinfo=_zone(shape[8]))
        whole = (when - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise TimestampError(f'cannot parse "{text}" as an RFC 3339 time: {error}') from None
    return whole + int(((shape[7] or ".") + "000")[1:4])


def _zone(text: str) -> timezone:
    if text in ("Z", "z"):
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    return timezone(-offset if text[0] == "-" else offset)
