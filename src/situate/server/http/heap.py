"""Returns free memory to the system.

A TLS handshake needs about 50 KiB beside what the connection keeps. When a thousand clients connect at once, as after a
restart of the server, the freed memory is fragmented and the C library keeps it: usually 10 MiB, and up to 50.
"""

from __future__ import annotations

import ctypes
from typing import Final

_trim: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Only glibc has it."""


def trim_heap() -> None:
    """Takes milliseconds, or some tens of them on a large heap."""
    if _trim is not None:
        _trim(0)
