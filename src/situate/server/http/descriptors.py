"""Raises the limit of open files to what the connections need, or else lowers the limit of connections."""

from __future__ import annotations

import resource
from contextlib import suppress
from dataclasses import replace
from typing import Final

from situate.loop.logs import Log
from situate.server.http.settings import Limits

RESERVED: Final = 1_000
"""Descriptors for everything but connections of clients: the store, logs, nodes, other servers."""
FEWER: Final = (
    "The process may open too few files for its connections, so it accepts fewer; raise the limit (ulimit -n)"
)
_log = Log(__name__)


def fit_descriptors(limits: Limits) -> Limits:
    """Raise RLIMIT_NOFILE to what the limits need. If that is not allowed, return limits with fewer connections."""
    needed = limits.connections + RESERVED
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _enough(now, needed):
        return limits
    # Only a privileged process may raise the hard limit.
    for wanted in ((needed, max(needed, most)), (needed if _enough(most, needed) else most, most)):
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, wanted)
            break
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _enough(now, needed):
        return limits
    fewer = max(now - RESERVED, now // 2)
    _log.warning(FEWER, connections=fewer, wanted=limits.connections, files=now)
    return replace(limits, connections=fewer)


def _enough(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed
