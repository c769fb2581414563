"""Logs as kube-scheduler writes them: text with klog's header, or JSON; -v levels; keys and values after the message.

    I1115 10:20:30.123456       1 drive.py:88] "Successfully bound pod to node" pod="default/web" node="n1"
    {"ts":1794738030123.456,"caller":"drive.py:88","msg":"Successfully bound pod to node","v":2,"pod":"default/web"}

Built on the standard library's loggers: V(n) is the level INFO - n, so that the records of libraries fit in. What looks
like a bearer token is masked, although no caller should log one.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import IO, Any, Final

KEYS: Final = "keys"
"""The attribute of a record that has its keys and values."""
MOST_V: Final = 10
LONGEST: Final = 16 << 10
"""How many characters of a value to log."""
MASKED: Final = r"\1<masked>"

_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_SECRET: Final = re.compile(r"((?:Bearer|Basic) +)[A-Za-z0-9._~+/=-]{4,}")
_PLAIN_KEY: Final = re.compile(r"[\w./-]+")


class Log:
    """A logger whose records have keys. `v(2).info(...)` is shown from -v=2 on; errors always."""

    __slots__ = ("_level", "_logger")

    def __init__(self, name: str, level: int = logging.INFO) -> None:
        self._logger = logging.getLogger(name)
        self._level = level

    def v(self, level: int) -> Log:
        return Log(self._logger.name, logging.INFO - min(level, MOST_V))

    @property
    def enabled(self) -> bool:
        """Whether `info` would be shown. Ask before you compute something only to log it."""
        return self._logger.isEnabledFor(self._level)

    def info(self, message: str, **keys: object) -> None:
        self._logger.log(self._level, message, extra={KEYS: keys}, stacklevel=2)

    def warning(self, message: str, **keys: object) -> None:
        self._logger.warning(message, extra={KEYS: keys}, stacklevel=2)

    def error(self, message: str, **keys: object) -> None:
        self._logger.error(message, extra={KEYS: keys}, stacklevel=2)


@dataclass(frozen=True, slots=True)
class Logging:
    """The logging flags."""

    format: str = "text"
    verbosity: int = 0
    vmodule: tuple[tuple[str, int], ...] = ()
    """(pattern of a file's name without its ending, verbosity there)."""
    split_stream: bool = False
    """Errors to stderr, all else to stdout."""


def set_up(wanted: Logging, stderr: IO[str] | None = None, stdout: IO[str] | None = None) -> None:
    """Make all loggers of this process write as wanted, instead of as set up before."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _Handler):
            root.removeHandler(handler)
    formatter: logging.Formatter = JsonFormatter() if wanted.format == "json" else TextFormatter()
    handlers = [_Handler(stderr or sys.stderr, formatter, wanted, logging.ERROR if wanted.split_stream else 0)]
    if wanted.split_stream:
        handlers.append(_Handler(stdout or sys.stdout, formatter, wanted, 0, below=logging.ERROR))
    for handler in handlers:
        root.addHandler(handler)
    most = max([wanted.verbosity, *(level for _, level in wanted.vmodule)])
    root.setLevel(logging.INFO)
    logging.getLogger("situate").setLevel(logging.INFO - min(most, MOST_V))
    # Show the records of libraries only at the highest verbosity.
    for name in ("asyncio", "aiohttp"):
        logging.getLogger(name).setLevel(logging.INFO if most >= MOST_V else logging.CRITICAL)


class _Handler(logging.StreamHandler[IO[str]]):
    def __init__(
        self, stream: IO[str], formatter: logging.Formatter, wanted: Logging, least: int, below: int = 1_000
    ) -> None:
        super().__init__(stream)
        self.setFormatter(formatter)
        self._least, self._below = least, below
        self._verbosity, self._vmodule = wanted.verbosity, wanted.vmodule

    def filter(self, record: logging.LogRecord) -> bool:
        if not self._least <= record.levelno < self._below:
            return False
        return record.levelno >= logging.INFO or verbosity_of(record) <= self._wanted(record.module)

    def _wanted(self, module: str) -> int:
        for pattern, level in self._vmodule:
            if fnmatchcase(module, pattern):
                return level
        return self._verbosity

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        """A log that cannot be written does not stop the process."""


def verbosity_of(record: logging.LogRecord) -> int:
    return max(0, logging.INFO - record.levelno)


class TextFormatter(logging.Formatter):
    """klog's lines."""

    def format(self, record: logging.LogRecord) -> str:
        letter = _LETTERS.get(record.levelno, "I")
        at = time.localtime(record.created)
        micros = int(record.created % 1 * 1_000_000)
        clock = f"{at.tm_mon:02}{at.tm_mday:02} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}.{micros:06}"
        head = f"{letter}{clock} {os.getpid():7} {record.filename}:{record.lineno}]"
        return " ".join([head, _quoted(_message(record)), *(_pair(key, value) for key, value in _keys(record).items())])


class JsonFormatter(logging.Formatter):
    """One object a line, with the names that Kubernetes' components use."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created * 1_000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": _message(record),
        }
        if record.levelno < logging.WARNING:
            line["v"] = verbosity_of(record)
        for key, value in _keys(record).items():
            line[key if key not in line else f"{key}_"] = _plain(value)
        return json.dumps(line, ensure_ascii=False)


def _message(record: logging.LogRecord) -> str:
    """In one line; with the exception, if there is one, and without its traceback."""
    text = record.getMessage()
    if record.exc_info and record.exc_info[1] is not None:
        text = f"{text}: {type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
    return masked(text)


def masked(text: str) -> str:
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return _SECRET.sub(MASKED, cut)


def _keys(record: logging.LogRecord) -> Mapping[str, object]:
    found: Mapping[str, object] = getattr(record, KEYS, {})
    return found


def _pair(key: str, value: object) -> str:
    name = key if _PLAIN_KEY.fullmatch(key) else _quoted(key)
    plain = _plain(value)
    return f"{name}={_quoted(plain) if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)}"


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return masked(str(value))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
