"""Host ports in use, by port. Few pods take any, so this is a table of exceptions, not a column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from situate.core.state.classes import HostPort

EVERY_ADDRESS: Final = "0.0.0.0"


class PortTable:
    """(protocol, port) -> node row -> address -> how many pods take it there."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken: dict[tuple[str, int], dict[int, dict[str, int]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        for port in ports:
            addresses = self.taken.setdefault((port.protocol, port.port), {}).setdefault(row, {})
            addresses[port.ip] = addresses.get(port.ip, 0) + 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        for port in ports:
            by_row = self.taken[(port.protocol, port.port)]
            addresses = by_row[row]
            addresses[port.ip] -= 1
            if not addresses[port.ip]:
                del addresses[port.ip]
            if not addresses:
                del by_row[row]
            if not by_row:
                del self.taken[(port.protocol, port.port)]

    def holders(self, port: HostPort) -> dict[int, dict[str, int]]:
        """Node row -> addresses in use, for every node where this port is taken at some address."""
        return self.taken.get((port.protocol, port.port), {})


def conflicts(wanted_ip: str, addresses: Iterable[str]) -> bool:
    """Whether an address conflicts with those in use: it does with itself, and the wildcard with all."""
    return any(EVERY_ADDRESS in (wanted_ip, ip) or ip == wanted_ip for ip in addresses)
