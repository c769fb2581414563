"""Memory that nobody uses any more, given back to the system.

A TLS handshake needs about 50 KiB while it lasts, beside what stays with the connection. When a thousand clients come
at once, as after a restart of the server, what is free again lies in between what is not, and the C library keeps it:
some 10 MiB as a rule, and up to 50.
"""

from __future__ import annotations

import ctypes
from typing import Final

__all__ = ["trim_heap"]

_trim: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Of glibc; other C libraries have none, and other ways."""


def trim_heap() -> None:
    """Whole pages only. Takes milliseconds, or some tens of them if there is very much in between."""
    if _trim is not None:
        _trim(0)
