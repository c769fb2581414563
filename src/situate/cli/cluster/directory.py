"""The directory of a cluster, for its local administrator: the address of its server, and a client of it."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from situate.cli.cluster.connection import KUBECONFIG, Client, with_client
from situate.cli.cluster.local import require_running
from situate.cli.control_plane.state import read_state
from situate.server.identity.secret_files import STAT_INTERVAL_S

UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([mhd])")

EVERY_ADDRESS: Final = ("0.0.0.0", "::")

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Duration(click.ParamType[timedelta]):
    """`30m`, `12h` or `7d`, up to a limit."""

    name = "duration"

    def __init__(self, most: timedelta) -> None:
        self._most = most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = DURATION.fullmatch(str(value))
        if match is None:
            self.fail(f"{str(value)[:20]!r} is not a duration: 30m, 12h or 7d", param, ctx)
        found = int(match[1]) * UNITS[match[2]]
        if found > self._most:
            self.fail(f"{value} is longer than {self._most.days} days", param, ctx)
        return found


def server_option(command: F) -> F:
    text = "The server's address for others; default: as it listens, or by this machine's name."
    return click.option("--server", metavar="URL", callback=_address, help=text)(command)


def _address(_ctx: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and (urlsplit(value).scheme != "https" or not urlsplit(value).hostname):
        raise click.BadParameter(f"{value} is not an address: https://HOST:PORT")
    return value.rstrip("/") if value is not None else None


def server_address(directory: Path) -> str:
    """The address of the server in a directory, running or not. A server on every address has this machine's name."""
    found = read_state(directory)
    if found is not None:
        url = str(found["url"])
    else:
        from situate.kube.kubeconfig import find_access

        url = find_access(str(directory / KUBECONFIG), None, None).server
    parts = urlsplit(url)
    if parts.hostname not in EVERY_ADDRESS:
        return url
    return parts._replace(netloc=f"{socket.gethostname()}:{parts.port}").geturl()


def with_running(directory: Path, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with the administrator's client of a cluster that is up."""
    return with_client(str(require_running(directory).kubeconfig), None, work)


def settle(directory: Path) -> None:
    """Wait until a running server has noticed a change of its files, so that what was revoked is refused by now."""
    if read_state(directory) is not None:
        time.sleep(2 * STAT_INTERVAL_S)
