"""Offsets of time zones, for the schedules of CronJobs."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def utc_offset(name: str, seconds: int) -> int | None:
    """Seconds east of Greenwich in a zone at a moment; None: there is no such zone."""
    zone = _zone(name or "UTC")
    offset = None if zone is None else datetime.fromtimestamp(seconds, UTC).astimezone(zone).utcoffset()
    return None if offset is None else int(offset.total_seconds())
