"""Faults of plugins that are not ours: told so that their authors find them, and never taken for faults of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_OURS: Final = __file__.rpartition("/core/")[0]
_PYTHONS: Final = ("<frozen ", "/importlib/")


class PluginError(Exception):
    """A plugin of somebody else's raised, or answered with what the contract forbids."""

    def __init__(self, plugin: str, problem: str) -> None:
        super().__init__(f'plugin "{plugin}": {problem}')


def ask(plugin: str, what: str, question: Callable[[], T]) -> T:
    """The answer to a question that runs somebody else's code; whatever that raises is a PluginError."""
    try:
        return question()
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(plugin, f"{what} raised {told(error)}") from error


def worth(plugin: object, pod: object, event: object) -> bool:
    """Whether an event is worth waking a pod for, by somebody's `wakes`; one that raises must not strand the pod."""
    asked = getattr(plugin, "wakes", None)
    if asked is None:
        return True
    try:
        return ask("", "wakes", lambda: bool(asked(pod, event)))
    except PluginError:
        return True


def told(error: BaseException) -> str:
    """`KeyError: 'rack' (quiet.py, line 12)`: what was raised, and the last line of theirs that led to it."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    theirs = ""
    line = 0
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not theirs and not file.startswith(_OURS) and not any(part in file for part in _PYTHONS):
            theirs = file
        if theirs and file == theirs:
            line = step.tb_lineno
        step = step.tb_next
    return f"{text} ({theirs.rpartition('/')[2]}, line {line})" if theirs else text
