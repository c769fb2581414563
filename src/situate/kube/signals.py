"""Signals of a scheduler process: SIGTERM and SIGINT stop it, SIGHUP reloads its configuration."""

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
def handle_signals(stop: Callable[[], bool], reload: Callable[[], None]) -> Iterator[None]:
    """In the running event loop. If `stop` returns False, it was called before, and the process exits at once."""
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
