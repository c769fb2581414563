"""The directory of a cluster, for its local administrator: the address of its server, and a client of it."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

import click

from situate.cli.cluster.connection import KUBECONFIG, Client, with_client
from situate.cli.control_plane.state import read_state
from situate.server.identity.secret_files import STAT_INTERVAL_S

UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([mhd])")

T = TypeVar("T")


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


def server_address(directory: Path) -> str:
    """The address of the server in a directory, running or not."""
    found = read_state(directory)
    if found is not None:
        return str(found["url"])
    from situate.kube.kubeconfig import find_access

    return find_access(str(directory / KUBECONFIG), None, None).server


def with_running(directory: Path, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with the administrator's client of a cluster that is up."""
    if read_state(directory) is None:
        raise click.ClickException(f"no cluster is up in {directory}; `situate up` starts it")
    return with_client(str(directory / KUBECONFIG), None, work)


def settle(directory: Path) -> None:
    """Wait until a running server has noticed a change of its files, so that what was revoked is refused by now."""
    if read_state(directory) is not None:
        time.sleep(2 * STAT_INTERVAL_S)
