"""The signals that a scheduler process hears: SIGTERM and SIGINT end it, SIGHUP has its configuration read again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from situate.loop.logs import Log

AT_ONCE: Final = 1
"""The exit code at a second signal."""
ENDING: Final = (signal.SIGTERM, signal.SIGINT)

_log = Log(__name__)


@contextmanager
def heard(stop: Callable[[], bool], reload: Callable[[], None]) -> Iterator[None]:
    """In the running event loop. `stop` is False if it had been told before: then the process ends on the spot."""
    loop = asyncio.get_running_loop()
    for number in ENDING:
        loop.add_signal_handler(number, partial(_end, stop, number))
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        for number in (*ENDING, signal.SIGHUP):
            loop.remove_signal_handler(number)


def _end(stop: Callable[[], bool], number: signal.Signals) -> None:
    if not stop():
        _log.error("A second signal, exiting at once", signal=number.name)
        os._exit(AT_ONCE)
    _log.info("Stopping", signal=number.name)
