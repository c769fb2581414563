"""Unexpected errors, logged in one line each: users see no traceback."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from situate.loop.drive import EngineError, describe_error
from situate.loop.logs import Log

REPORT_TO: Final = "please report it with this line, and with the journal if there is one (--journal)"

_log = Log(__name__)


def first(error: BaseException) -> BaseException:
    """The first error of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def say_exiting(error: BaseException) -> None:
    if isinstance(error, EngineError):
        _log.error(f"The engine failed, exiting: {REPORT_TO}", err=str(error))
    else:
        _log.error(f"An unexpected error, exiting: {REPORT_TO}", err=describe_error(error))


def say_unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An event loop's exception handler: logs what a task raised and nobody awaited.

    Connections that break inside libraries are logged at a higher verbosity.
    """
    error = context.get("exception")
    if isinstance(error, Exception) and not isinstance(error, OSError):
        _log.error(f"An unexpected error, going on: {REPORT_TO}", err=describe_error(error))
    else:
        _log.v(4).info("Noticed by the event loop", what=str(context.get("message")), err=repr(error))
