"""Errors of out-of-tree plugins, described so that their authors find the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_OURS: Final = __file__.rpartition("/core/")[0]
_PYTHONS: Final = ("<frozen ", "/importlib/")


class PluginError(Exception):
    """An out-of-tree plugin raised an exception or broke the contract."""

    def __init__(self, plugin: str, problem: str) -> None:
        super().__init__(f'plugin "{plugin}": {problem}')


def call(plugin: str, what: str, function: Callable[[], T]) -> T:
    """Run an out-of-tree plugin's code. Any exception becomes a PluginError."""
    try:
        return function()
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(plugin, f"{what} raised {describe(error)}") from error


def wakes_pod(plugin: object, pod: object, event: object) -> bool:
    """Whether the plugin's `wakes` wants the pod retried. One that raises must not strand the pod."""
    wakes = getattr(plugin, "wakes", None)
    if wakes is None:
        return True
    try:
        return call("", "wakes", lambda: bool(wakes(pod, event)))
    except PluginError:
        return True


def describe(error: BaseException) -> str:
    """`KeyError: 'rack' (quiet.py, line 12)`: the exception and the last line of the plugin that led to it."""
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
